"""The step register as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def register(
    params: dict,
    key: str,
    registered_model: str,
    model_store: str,
    repository: str,
    commit: str,
    model: Input[Model],
    model_digest: str,
    decision: Input[Dataset],
    decision_digest: str,
    registration: Output[Dataset],
    registration_digest: dsl.OutputPath(str),
    version: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Register the model in MLflow, and move the alias champion if the gate says so."""
    return stage_container("register")
