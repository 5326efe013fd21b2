"""The stage train-synthesis as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def train_synthesis(
    params: dict,
    key: str,
    public: Input[Dataset],
    public_digest: str,
    pitch: Input[Model],
    pitch_digest: str,
    content: Input[Model],
    content_digest: str,
    speaker: Input[Model],
    speaker_digest: str,
    model: Output[Model],
    model_digest: dsl.OutputPath(str),
    metrics: Output[Metrics],
    curve: Output[Dataset],
    fingerprint: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Train one system's acoustic model on its own released features."""
    return stage_container("train-synthesis")
