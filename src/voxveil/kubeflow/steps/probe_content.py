"""Step ``probe_content``: one draw of a content variant's noise, measured on public speech."""

from __future__ import annotations

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.probing import probe

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Measure it."""
    return probe(call, "content")
