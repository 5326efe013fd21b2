"""Step ``anonymize_gather``: merges the shares of one system into the output of ``anonymize``."""

from __future__ import annotations

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.sharing import gather

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Put the shares together."""
    return gather(call)
