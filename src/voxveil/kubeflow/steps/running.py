"""Runner of one step with the input and output format of a stage."""

from __future__ import annotations

from voxveil.kubeflow.adapter import run_task
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.registry import is_step, share_of, spec_of, step_runner, step_values
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError

__all__ = ["run_step"]


def run_step(name: str, executor_input_json: str) -> int:
    """Run a step.

    Args:
        name: Its name, or its command name.
        executor_input_json: What the launcher put in place of ``{{$}}``.

    Returns:
        0 when every output and ``executor_output.json`` are in place.

    Raises:
        VoxveilError: Nothing was written.
    """
    spec = spec_of(name)
    if not is_step(spec.name):
        raise InputError(f"{name} is a stage; run it by 'voxveil stage {spec.command}'")

    def work(call: StepCall) -> StepResult:
        # What is gathered was checked when it was fetched; what shares are made of, by who makes them.
        for port in () if share_of(spec.name) else (port for port in spec.inputs if not port.shares):
            done = require_done(call.inputs[port.name], port.name, digest=call.digests[port.name])
            if done.stage != port.made_by:
                raise InputError(
                    f"input {port.name}: must be output of {port.made_by}, is output of {done.stage}"
                )
        return step_runner(spec.name)(call)

    return run_task(spec, executor_input_json, work, tuple(step_values(spec.name)))
