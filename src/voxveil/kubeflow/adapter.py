"""Adapter between Kubeflow and a stage: reads ``{{$}}``, writes ``executor_output.json``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
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
from voxveil.runtime.atomic import read_json, write_bytes, write_json
from voxveil.runtime.done import DONE
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import StageSpec, stage_spec
from voxveil.stages.run import fingerprint, made_for, run_stage
from voxveil.stages.training_runs import training_name

__all__ = ["PAGE", "check_keys", "run_executor_input"]

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
    call = ExecutorInput.parse(executor_input_json)
    mapping = params_mapping(call)
    params = parse_params(mapping, complete=True)
    key = str(call.parameters.get("key", ""))
    check_output_parameters(call, spec, ("fingerprint",) if spec.trains else ())
    locations = report_locations(call.parameters) if spec.name == "report" else None
    if spec.gpu:
        from voxveil.training.devices import require_gpu

        require_gpu()
    outputs = {port.name: named_artifact(call.outputs, spec, files_artifact(port)) for port in spec.outputs}
    pages = {
        port: named_artifact(call.outputs, spec, port.name) for port in spec.outputs if port.kind == "HTML"
    }
    with tempfile.TemporaryDirectory(prefix="voxveil-") as temporary:
        params_path = Path(temporary) / "params.json"
        write_json(params_path, mapping)
        inputs, digests = read_inputs(call, spec, params, Path(temporary))
        check_keys(spec, key, params, inputs)
        done = run_stage(
            spec.name,
            params_path,
            inputs,
            {name: artifact.path for name, artifact in outputs.items()},
            key=key,
            digests=digests,
            training=read_training(call),
        )
    for port, page in pages.items():
        write_bytes(page.path, (outputs[port.name].path / PAGE).read_bytes())
    mark = f"{training_name(spec, key)} {fingerprint(spec, key, params, digests)}" if spec.trains else ""
    write_output(call, spec, key, done, outputs, {"fingerprint": mark})
    if locations is not None:
        leave_locations(locations, outputs["report"].uri, done["report"].digest)
    for name, record in done.items():
        print(f"{spec.command}: {name}: {len(record.files)} files, digest {record.digest}", file=sys.stderr)
    return 0


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
