"""Runner of one step with the input and output format of a stage."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from voxveil.config import parse_params
from voxveil.kubeflow.adapter import check_keys
from voxveil.kubeflow.ends import (
    ExecutorInput,
    check_output_parameters,
    named_artifact,
    params_mapping,
    read_inputs,
    write_output,
)
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.registry import STEP_VALUES, is_step, share_of, spec_of
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
    call = ExecutorInput.parse(executor_input_json)
    params = parse_params(params_mapping(call), complete=True)
    key = str(call.parameters.get("key", ""))
    check_output_parameters(call, spec, STEP_VALUES[spec.name])
    outputs = {port.name: named_artifact(call.outputs, spec, port.name) for port in spec.outputs}
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        inputs, digests = read_inputs(call, spec, params, Path(scratch))
        check_keys(spec, key, params, inputs)
        # What is gathered was checked when it was fetched; what shares are made of, by who makes them.
        for port in () if share_of(spec.name) else (port for port in spec.inputs if not port.shares):
            done = require_done(inputs[port.name], port.name, digest=digests[port.name])
            if done.stage != port.made_by:
                raise InputError(
                    f"input {port.name}: must be output of {port.made_by}, is output of {done.stage}"
                )
        module = importlib.import_module(f"voxveil.kubeflow.steps.{spec.name}")
        result: StepResult = module.run(
            StepCall(
                spec.name,
                key,
                params,
                call.parameters,
                inputs,
                {port: artifact.uri for port, artifact in call.inputs.items()},
                digests,
                {port: artifact.path for port, artifact in outputs.items()},
            )
        )
    write_output(call, spec, key, result.done, outputs, result.values)
    for output, record in result.done.items():
        print(f"{spec.command}: {output}: {len(record.files)} files, digest {record.digest}", file=sys.stderr)
    return 0
