"""The stage report as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import HTML, Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def report(
    params: dict,
    metrics: list[str],
    samples: list[str],
    training: list[str],
    scores: list[str],
    report: Output[HTML],
    report_files: Output[Dataset],
    report_digest: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Write the report page and publish the run to MLflow."""
    return stage_container("report")
