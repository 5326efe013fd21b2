"""The step gate as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def gate(
    params: dict,
    key: str,
    registered_model: str,
    metrics: Input[Metrics],
    metrics_digest: str,
    scores: Input[Dataset],
    scores_digest: str,
    original: Input[Metrics],
    original_digest: str,
    decision: Output[Dataset],
    decision_digest: dsl.OutputPath(str),
    promoted: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Hold a newly trained system against the pinned reference and the champion."""
    return stage_container("gate")
