"""The stage bundle as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def bundle(
    params: dict,
    key: str,
    pitch: Input[Model],
    pitch_digest: str,
    content: Input[Model],
    content_digest: str,
    speaker: Input[Model],
    speaker_digest: str,
    vocoder: Input[Model],
    vocoder_digest: str,
    synthesis: Input[Model],
    synthesis_digest: str,
    model: Output[Model],
    model_digest: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Pack one system into a model folder that anonymizes by itself."""
    return stage_container("bundle")
