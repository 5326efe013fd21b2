"""The one adapter between Kubeflow and a stage: reads ``{{$}}``, writes ``executor_output.json``.

Kubeflow's cache key holds parameters and the names of artifacts, not their content. So each
stage outputs the digest of what it wrote as a parameter, and its consumers take that parameter
and refuse an artifact that differs.
"""

from __future__ import annotations

import json
import math
import reprlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.config import Params, parse_params
from voxveil.errors import InputError, ParamsError
from voxveil.kubeflow.executor import Artifact, ExecutorInput
from voxveil.kubeflow.fan_in import collect, location
from voxveil.stages.registry import Port, StageSpec, stage_spec
from voxveil.stages.run import made_for, run_stage
from voxveil.storage.atomic import read_json, write_bytes, write_json
from voxveil.storage.done import DONE, Done

__all__ = ["PAGE", "files_artifact", "run_executor_input"]

#: The file of an HTML output that Kubeflow's page shows.
PAGE = "index.html"


def files_artifact(port: Port) -> str:
    """Return the name of the artifact that holds an output's folder.

    Kubeflow shows an HTML artifact only if it is one file: there the artifact named as the
    output holds the page, and the whole folder is the artifact ``NAME_files``.
    """
    return f"{port.name}_files" if port.kind == "HTML" else port.name


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
    mapping = _params_mapping(call)
    params = parse_params(mapping, complete=True)
    key = str(call.parameters.get("key", ""))
    _check_output_parameters(call, spec)
    outputs = {port.name: _artifact(call.outputs, spec, files_artifact(port)) for port in spec.outputs}
    pages = {port: _artifact(call.outputs, spec, port.name) for port in spec.outputs if port.kind == "HTML"}
    with tempfile.TemporaryDirectory(prefix="voxveil-") as temporary:
        params_path = Path(temporary) / "params.json"
        write_json(params_path, mapping)
        inputs, digests = _inputs(call, spec, params, Path(temporary))
        _check_keys(spec, key, params, inputs)
        done = run_stage(
            spec.name,
            params_path,
            inputs,
            {name: artifact.path for name, artifact in outputs.items()},
            key=key,
            digests=digests,
        )
    for port, page in pages.items():
        write_bytes(page.path, (outputs[port.name].path / PAGE).read_bytes())
    write_json(call.output_file, _executor_output(call, spec, key, done, outputs))
    for name, record in done.items():
        print(f"{spec.command}: {name}: {len(record.files)} files, digest {record.digest}", file=sys.stderr)
    return 0


def _params_mapping(call: ExecutorInput) -> dict[str, Any]:
    value = call.parameters.get("params")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ParamsError(f"parameter params: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        got = "nothing" if value is None else reprlib.repr(value)
        raise ParamsError(f"parameter params: must be an object with every section, got {got}")
    return value


def _artifact(artifacts: Mapping[str, Artifact], spec: StageSpec, name: str) -> Artifact:
    if name not in artifacts:
        raise InputError(f"stage {spec.command}: the executor input has no artifact {name!r}")
    return artifacts[name]


def _check_output_parameters(call: ExecutorInput, spec: StageSpec) -> None:
    folders = [port.name for port in spec.outputs if not port.copy_of]
    known = {f"{name}_{what}" for name in folders for what in ("digest", "location")}
    unknown = [name for name in call.output_parameters if name not in known]
    if unknown:
        raise InputError(f"stage {spec.command}: has no output parameter {', '.join(unknown)}")


def _inputs(
    call: ExecutorInput, spec: StageSpec, params: Params, temporary: Path
) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the folder of each input, and the digests its producers reported."""
    folders: dict[str, Path] = {}
    digests: dict[str, str] = {}
    for port in spec.inputs:
        if port.many:
            folders[port.name] = temporary / port.name
            entries = call.parameters.get(port.name)
            collect(entries, folders[port.name], port.name, list(params.systems))
            continue
        folders[port.name] = _artifact(call.inputs, spec, port.name).path
        digest = call.parameters.get(f"{port.name}_digest")
        if not isinstance(digest, str) or not digest:
            raise InputError(f"stage {spec.command}: parameter {port.name}_digest is missing, got {digest!r}")
        digests[port.name] = digest
    return folders, digests


def _check_keys(spec: StageSpec, key: str, params: Params, inputs: Mapping[str, Path]) -> None:
    """Refuse parameters that ask for another wiring than the compiled one.

    Which variant feeds which system is fixed when the pipeline is compiled, the values come when
    it is submitted: only here can the two part.
    """
    for port in spec.inputs:
        record = inputs[port.name] / DONE
        if port.many or not record.is_file():
            continue
        content = read_json(record)
        producer = stage_spec(str(content.get("stage")))
        wanted = made_for(port, params, key) if key in params.systems else None
        if wanted is not None and content.get("key") != wanted:
            raise ParamsError(
                f"stage {spec.command} {key}: params want {port.name} of {producer.name} {wanted!r},"
                f" the pipeline was compiled with {content.get('key')!r}; compile it again with these params"
            )


def _executor_output(
    call: ExecutorInput, spec: StageSpec, key: str, done: Mapping[str, Done], outputs: Mapping[str, Artifact]
) -> dict[str, Any]:
    values: dict[str, str] = {}
    for name, record in done.items():
        values[f"{name}_digest"] = record.digest
        values[f"{name}_location"] = location(key, outputs[name].uri, record.digest)
    artifacts = {}
    for port in spec.outputs:
        artifact = outputs[port.name]
        metadata = _metadata(port, spec, key, artifact.path, done.get(port.name))
        artifacts[files_artifact(port)] = _runtime_artifact(artifact, metadata)
        if port.kind == "HTML":
            artifacts[port.name] = _runtime_artifact(call.outputs[port.name], {"stage": spec.name})
    return {
        "parameterValues": {name: values[name] for name in call.output_parameters},
        "artifacts": artifacts,
    }


def _runtime_artifact(artifact: Artifact, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"artifacts": [{"name": artifact.name, "uri": artifact.uri, "metadata": dict(metadata)}]}


def _metadata(port: Port, spec: StageSpec, key: str, path: Path, done: Done | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"stage": spec.name, "secrecy": port.secrecy}
    if key:
        facts["key"] = key
    if done:
        facts |= {"digest": done.digest, "files": len(done.files)}
    if port.kind == "Metrics" and port.copy_of:
        # A number that is not finite would be refused when Kubeflow stores the metadata.
        facts |= {name: value for name, value in read_json(path).items() if _is_number(value)}
    return facts


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
