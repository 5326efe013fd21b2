"""The stage transcribe as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def transcribe(
    params: dict,
    key: str,
    recognizer: Input[Model],
    recognizer_digest: str,
    released: Input[Dataset],
    released_digest: str,
    private: Input[Dataset],
    private_digest: str,
    transcripts: Output[Dataset],
    transcripts_digest: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Recognise the released speech and count errors."""
    return stage_container("transcribe")
