"""The step probe_gather as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import HTML, Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def probe_gather(
    params: dict,
    pitch: list[str],
    content: list[str],
    experiment: Output[Dataset],
    experiment_digest: dsl.OutputPath(str),
    page: Output[HTML],
) -> dsl.ContainerSpec:
    """Put the probes of every variant and draw together: table, figures and page, or refuse."""
    return stage_container("probe_gather")
