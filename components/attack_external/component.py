"""The step attack_external as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def attack_external(
    params: dict,
    location: str,
    suffix: str,
    scores: Output[Dataset],
    scores_digest: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Attack somebody else's anonymized speech: train the attackers on it, score its trials."""
    return stage_container("attack_external")
