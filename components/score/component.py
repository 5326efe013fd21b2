"""The stage score as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def score(
    params: dict,
    key: str,
    attacker: Input[Model],
    attacker_digest: str,
    original_attacker: Input[Model],
    original_attacker_digest: str,
    released: Input[Dataset],
    released_digest: str,
    private: Input[Dataset],
    private_digest: str,
    scores: Output[Dataset],
    scores_digest: dsl.OutputPath(str),
    scores_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Score trials and the pooled rank protocol in every attack scenario."""
    return stage_container("score")
