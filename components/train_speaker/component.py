"""The stage train-speaker as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def train_speaker(
    params: dict,
    public: Input[Dataset],
    public_digest: str,
    model: Output[Model],
    model_digest: dsl.OutputPath(str),
    metrics: Output[Metrics],
    curve: Output[Dataset],
    fingerprint: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Train the speaker encoder and build the public pool of targets."""
    return stage_container("train-speaker")
