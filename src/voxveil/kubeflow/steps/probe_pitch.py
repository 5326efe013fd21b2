"""Step ``probe_pitch``: one draw of a pitch variant's noise, measured on public speech."""

from __future__ import annotations

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.probing import probe

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Measure it."""
    return probe(call, "pitch")
