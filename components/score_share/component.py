"""The step score_share as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def score_share(
    params: dict,
    key: str,
    share: str,
    attacker: Input[Model],
    attacker_digest: str,
    original_attacker: Input[Model],
    original_attacker_digest: str,
    released: Input[Dataset],
    released_digest: str,
    private: Input[Dataset],
    private_digest: str,
    made: Output[Dataset],
    made_digest: dsl.OutputPath(str),
    made_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Attack in some of the scenarios; a gather puts them together."""
    return stage_container("score_share")
