"""The stage train-attacker as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def train_attacker(
    params: dict,
    key: str,
    attacker: Input[Dataset],
    attacker_digest: str,
    model: Output[Model],
    model_digest: dsl.OutputPath(str),
    metrics: Output[Metrics],
    curve: Output[Dataset],
    fingerprint: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Train the attackers on anonymized public speech."""
    return stage_container("train-attacker")
