"""Code shared by the steps ``probe_pitch`` and ``probe_content``."""

from __future__ import annotations

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.research.probe.pipeline import make_probe
from voxveil.runtime.errors import InputError

__all__ = ["probe"]


def probe(call: StepCall, kind: str) -> StepResult:
    """Measure the draw that the step was given, as ``voxveil probe pitch|content`` does.

    Raises:
        InputError: The draw is no whole number of at least 1, or the model is of another variant.
    """
    from voxveil.training.devices import require_gpu

    text = call.text("draw")
    if not text.isdecimal():
        raise InputError(f"step {call.step}: parameter draw must be a whole number, got {text!r}")
    require_gpu()
    inputs, out = call.inputs, call.outputs["probe"]
    done = make_probe(kind, inputs["public"], inputs["model"], out, call.params, call.key, int(text))
    return StepResult({"probe": done}, {})
