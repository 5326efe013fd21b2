"""The step anonymize_gather as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def anonymize_gather(
    params: dict,
    key: str,
    shares: list[str],
    attacker: Output[Dataset],
    attacker_digest: dsl.OutputPath(str),
    released: Output[Dataset],
    released_digest: dsl.OutputPath(str),
    samples: Output[Dataset],
    samples_digest: dsl.OutputPath(str),
    samples_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Put the anonymized shares of one system together, or refuse."""
    return stage_container("anonymize_gather")
