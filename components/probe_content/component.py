"""The step probe_content as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def probe_content(
    params: dict,
    key: str,
    draw: str,
    public: Input[Dataset],
    public_digest: str,
    model: Input[Model],
    model_digest: str,
    probe: Output[Dataset],
    probe_digest: dsl.OutputPath(str),
    probe_location: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Measure one draw of a content variant's noise on public speech."""
    return stage_container("probe_content")
