"""The step score_gather as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def score_gather(
    params: dict,
    key: str,
    shares: list[str],
    scores: Output[Dataset],
    scores_digest: dsl.OutputPath(str),
    scores_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Put the attacked scenarios of one system together, or refuse."""
    return stage_container("score_gather")
