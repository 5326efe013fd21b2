"""The step evaluate_attacks as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def evaluate_attacks(
    params: dict,
    scores: Input[Dataset],
    scores_digest: str,
    result: Output[Metrics],
    result_digest: dsl.OutputPath(str),
    flat: Output[Metrics],
) -> dsl.ContainerSpec:
    """Judge the attacks on somebody else's speech: every privacy metric, its interval, and warnings."""
    return stage_container("evaluate_attacks")
