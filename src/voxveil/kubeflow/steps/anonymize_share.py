"""Step ``anonymize_share``: one share of the utterances, announced before any noise is drawn."""

from __future__ import annotations

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.sharing import share

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Do the share."""
    return share(call)
