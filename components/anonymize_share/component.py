"""The step anonymize_share as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def anonymize_share(
    params: dict,
    key: str,
    share: str,
    model: Input[Model],
    model_digest: str,
    public: Input[Dataset],
    public_digest: str,
    private: Input[Dataset],
    private_digest: str,
    made: Output[Dataset],
    made_digest: dsl.OutputPath(str),
    made_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Anonymize one share of the utterances; a gather puts them together."""
    return stage_container("anonymize_share")
