"""The step evaluate_scores as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Metrics, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def evaluate_scores(
    params: dict,
    location: str,
    attacker: str,
    scenario: str,
    result: Output[Metrics],
    result_digest: dsl.OutputPath(str),
    flat: Output[Metrics],
) -> dsl.ContainerSpec:
    """Judge somebody else's score files: every privacy metric, its interval, and warnings."""
    return stage_container("evaluate_scores")
