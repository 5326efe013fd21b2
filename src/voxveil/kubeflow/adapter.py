"""Adapter between Kubeflow and a stage or step: reads ``{{$}}``, writes ``executor_output.json``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from voxveil.config import Params, parse_params
from voxveil.kubeflow.ends import (
    ExecutorInput,
    check_output_parameters,
    files_artifact,
    named_artifact,
    params_mapping,
    read_inputs,
    read_training,
    write_output,
)
from voxveil.kubeflow.locations import leave_locations, report_locations
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.runtime.atomic import read_json, write_bytes, write_json
from voxveil.runtime.done import DONE
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import StageSpec, stage_spec
from voxveil.stages.run import fingerprint, made_for, run_stage
from voxveil.stages.training_runs import training_name

__all__ = ["run_executor_input", "run_task"]

#: The file of an HTML output that Kubeflow's page shows.
PAGE = "index.html"


def run_executor_input(stage: str, executor_input_json: str) -> int:
    """Run a stage as Kubeflow asks.

    Args:
        stage: Stem or command name of the stage.
        executor_input_json: What the launcher put in place of ``{{$}}``.

    Returns:
        0 when every output and ``executor_output.json`` are in place.

    Raises:
        VoxveilError: Nothing was written.
    """
    spec = stage_spec(stage)
    values = ("fingerprint",) if spec.trains else ()
    return run_task(spec, executor_input_json, partial(_run_stage, spec), values)


def run_task(
    spec: StageSpec, executor_input_json: str, work: Callable[[StepCall], StepResult], values: Sequence[str]
) -> int:
    """Run the work of a stage or step with the inputs and outputs that the launcher's message names.

    Args:
        spec: The stage or step.
        executor_input_json: What the launcher put in place of ``{{$}}``.
        work: Writes the outputs.
        values: Names of its output parameters beside digests and locations.

    Returns:
        0 when every output and ``executor_output.json`` are in place.

    Raises:
        VoxveilError: Nothing was written.
    """
    message = ExecutorInput.parse(executor_input_json)
    params = parse_params(params_mapping(message.parameters), complete=True)
    key = str(message.parameters.get("key", ""))
    check_output_parameters(message, spec, values)
    locations = report_locations(message.parameters) if spec.name == "report" else None
    if spec.gpu:
        from voxveil.training.devices import require_gpu

        require_gpu()
    outputs = {
        port.name: named_artifact(message.outputs, spec, files_artifact(port)) for port in spec.outputs
    }
    pages = {
        port.name: named_artifact(message.outputs, spec, port.name)
        for port in spec.outputs
        if files_artifact(port) != port.name
    }
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        inputs, digests = read_inputs(message, spec, params, Path(scratch))
        check_keys(spec, key, params, inputs)
        result = work(
            StepCall(
                spec.name,
                key,
                params,
                message.parameters,
                inputs,
                {port: artifact.uri for port, artifact in message.inputs.items()},
                digests,
                {port: artifact.path for port, artifact in outputs.items()},
            )
        )
    for name, page in pages.items():
        write_bytes(page.path, (outputs[name].path / PAGE).read_bytes())
    write_output(message, spec, key, result.done, outputs, result.values)
    if locations is not None:
        leave_locations(locations, outputs["report"].uri, result.done["report"].digest)
    for name, record in result.done.items():
        print(f"{spec.command}: {name}: {len(record.files)} files, digest {record.digest}", file=sys.stderr)
    return 0


def _run_stage(spec: StageSpec, call: StepCall) -> StepResult:
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        params_path = Path(scratch) / "params.json"
        write_json(params_path, params_mapping(call.parameters))
        done = run_stage(
            spec.name,
            params_path,
            call.inputs,
            call.outputs,
            key=call.key,
            digests=call.digests,
            training=read_training(call.parameters),
        )
    if not spec.trains:
        return StepResult(done, {})
    mark = f"{training_name(spec, call.key)} {fingerprint(spec, call.key, call.params, call.digests)}"
    return StepResult(done, {"fingerprint": mark})


def check_keys(spec: StageSpec, key: str, params: Params, inputs: Mapping[str, Path]) -> None:
    """Raise an error if the parameters need another task graph than the compiled one.

    Which variant feeds which system is fixed when the pipeline is compiled, the values come when
    it is submitted: only here can the two part.
    """
    for port in spec.inputs:
        record = inputs[port.name] / DONE
        if port.many or not record.is_file():
            continue
        content = read_json(record)
        producer = str(content.get("stage"))
        wanted = made_for(port, params, key) if key in params.systems else None
        if wanted is not None and content.get("key") != wanted:
            raise ParamsError(
                f"stage {spec.command} {key}: params want {port.name} of {producer} {wanted!r},"
                f" the pipeline was compiled with {content.get('key')!r}; compile it again with these params"
            )
