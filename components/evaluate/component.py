"""The stage evaluate as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def evaluate(
    params: dict,
    key: str,
    scores: Input[Dataset],
    scores_digest: str,
    transcripts: Input[Dataset],
    transcripts_digest: str,
    released: Input[Dataset],
    released_digest: str,
    metrics: Output[Metrics],
    metrics_digest: dsl.OutputPath(str),
    metrics_location: dsl.OutputPath(str),
    flat: Output[Metrics],
) -> dsl.ContainerSpec:
    """Compute every privacy and utility metric of one system."""
    return stage_container("evaluate")
