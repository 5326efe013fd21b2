"""The stage anonymize as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def anonymize(
    params: dict,
    key: str,
    model: Input[Model],
    model_digest: str,
    public: Input[Dataset],
    public_digest: str,
    private: Input[Dataset],
    private_digest: str,
    attacker: Output[Dataset],
    attacker_digest: dsl.OutputPath(str),
    released: Output[Dataset],
    released_digest: dsl.OutputPath(str),
    samples: Output[Dataset],
    samples_digest: dsl.OutputPath(str),
    samples_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Release anonymized speech of the private speakers and the attacker's training set."""
    return stage_container("anonymize")
