"""Input and output of a task: reads the launcher's message, writes ``executor_output.json``.

Kubeflow's cache key holds parameters and the names of artifacts, not their content. So each
stage outputs the digest of what it wrote as a parameter, and its consumers take that parameter
and refuse an artifact that differs.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.config import Params
from voxveil.kubeflow.fan_in import collect, collect_shares, location
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import Done
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import Port, StageSpec

__all__ = [
    "Artifact",
    "ExecutorInput",
    "check_output_parameters",
    "files_artifact",
    "local_path",
    "named_artifact",
    "params_mapping",
    "read_inputs",
    "read_training",
    "write_output",
]

# Where the launcher keeps what it downloads and uploads, by the scheme of the artifact's URI.
_MOUNTS = {"gs://": "/gcs/", "s3://": "/s3/", "minio://": "/minio/"}

# What JSON calls the value of each Python type.
_KINDS = {list: "a list", dict: "an object", str: "the text", bool: "the truth value"}

_PARAMETER = re.compile(r"\{\{\$\.inputs\.parameters\['([^']+)'\]\}\}")


@dataclass(frozen=True)
class Artifact:
    """One artifact: its name and URI in the store, and its path in the container."""

    name: str
    uri: str
    path: Path


@dataclass(frozen=True)
class ExecutorInput:
    """A parsed ``{{$}}``.

    Attributes:
        parameters: Input parameters by name, placeholders filled.
        inputs: Input artifacts by name.
        outputs: Output artifacts by name.
        output_parameters: Names of the output parameters the launcher waits for.
        output_file: Where ``executor_output.json`` is to be written.
    """

    parameters: Mapping[str, Any]
    inputs: Mapping[str, Artifact]
    outputs: Mapping[str, Artifact]
    output_parameters: tuple[str, ...]
    output_file: Path

    @classmethod
    def parse(cls, text: str) -> ExecutorInput:
        """Parse the launcher's JSON text.

        Raises:
            InputError: It is no such message (an unfilled ``{{$}}`` says so).
            ParamsError: A parameter is null or an unfilled placeholder.
        """
        if text.strip() == "{{$}}":
            raise InputError(
                "--executor-input: got the unfilled placeholder {{$}}; a Kubeflow launcher fills it"
            )
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"--executor-input: not valid JSON ({error})") from None
        message = _object(message, "the message")
        inputs = _object(message.get("inputs") or {}, "inputs")
        outputs = _object(message.get("outputs"), "outputs")
        output_file = outputs.get("outputFile")
        if not isinstance(output_file, str) or not output_file:
            raise _no_message("outputs.outputFile", "a path", output_file)
        return cls(
            _filled(_object(inputs.get("parameterValues") or {}, "inputs.parameterValues")),
            _artifacts(_object(inputs.get("artifacts") or {}, "inputs.artifacts"), "inputs.artifacts"),
            _artifacts(_object(outputs.get("artifacts") or {}, "outputs.artifacts"), "outputs.artifacts"),
            tuple(_object(outputs.get("parameters") or {}, "outputs.parameters")),
            Path(output_file),
        )


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _no_message(where, "an object", value)
    return value


def _no_message(where: str, wanted: str, value: Any) -> InputError:
    got = "nothing" if value is None else f"{_KINDS.get(type(value), 'a number')} {reprlib.repr(value)}"
    return InputError(
        f"--executor-input: not an executor input of Kubeflow: {where} must be {wanted}, got {got}"
    )


def local_path(uri: str) -> Path:
    """Return where the launcher keeps the artifact at ``uri`` inside the container."""
    for scheme, mount in _MOUNTS.items():
        if uri.startswith(scheme):
            return Path(mount + uri.removeprefix(scheme))
    path = uri.removeprefix("file://")
    if "://" in path or not path.startswith("/"):
        known = ", ".join(_MOUNTS)
        raise InputError(f"artifact {uri}: must be an absolute path or a URI of {known} or file://")
    return Path(path)


def _artifacts(lists: Mapping[str, Any], where: str) -> dict[str, Artifact]:
    found = {}
    for name, content in lists.items():
        listed = _object(content, f"{where}.{name}").get("artifacts")
        if not isinstance(listed, list):
            raise _no_message(f"{where}.{name}.artifacts", "a list", listed)
        if not listed:
            continue
        first = _object(listed[0], f"{where}.{name}.artifacts[0]")
        for key in ("uri", "name", "customPath"):
            value = first.get(key)
            if not isinstance(value, str) and (key == "uri" or value is not None):
                raise _no_message(f"{where}.{name}.artifacts[0].{key}", "text", value)
        custom = first.get("customPath")
        path = Path(custom) if custom else local_path(first["uri"])
        found[name] = Artifact(first.get("name") or name, first["uri"], path)
    return found


def _filled(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Fill placeholders that refer to other parameters.

    A constant list of outputs of earlier tasks reaches some launchers with its placeholders in
    place and the values beside it, named ``pipelinechannel--TASK-OUTPUT``.
    """

    def fill(value: Any, where: str) -> Any:
        if isinstance(value, str):
            text = _PARAMETER.sub(lambda match: str(parameters.get(match[1], match[0])), value)
            if "{{" in text:
                raise ParamsError(f"{where}: got the unexpanded placeholder {text!r}")
            if text == "null":
                raise ParamsError(f"{where}: null is not allowed; leave the parameter out or give a value")
            return text
        if isinstance(value, list):
            return [fill(item, f"{where}[{index}]") for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: fill(item, f"{where}.{key}") for key, item in value.items()}
        if value is None:
            raise ParamsError(f"{where}: null is not allowed; leave the parameter out or give a value")
        return value

    return {name: fill(value, f"parameter {name}") for name, value in parameters.items()}


def files_artifact(port: Port) -> str:
    """Return the name of the artifact that holds an output's folder.

    Kubeflow shows an HTML artifact only if it is one file: there the artifact named as the
    output holds the page, and the whole folder is the artifact ``NAME_files``. A page that is a copy of
    another output's has no folder.
    """
    return f"{port.name}_files" if port.kind == "HTML" and not port.copy_of else port.name


def params_mapping(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter ``params`` as an object, which some launchers pass as text."""
    value = parameters.get("params")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ParamsError(f"parameter params: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        got = "nothing" if value is None else reprlib.repr(value)
        raise ParamsError(f"parameter params: must be an object with every section, got {got}")
    return value


def named_artifact(artifacts: Mapping[str, Artifact], spec: StageSpec, name: str) -> Artifact:
    """Return a required artifact."""
    if name not in artifacts:
        raise InputError(f"stage {spec.command}: the executor input has no artifact {name!r}")
    return artifacts[name]


def check_output_parameters(call: ExecutorInput, spec: StageSpec, values: Collection[str] = ()) -> None:
    """Raise an error if a component declares an output parameter that is never reported.

    Args:
        call: The message.
        spec: The stage or step.
        values: Output parameters beside digests and locations.
    """
    folders = [port.name for port in spec.outputs if not port.copy_of]
    known = {f"{name}_{what}" for name in folders for what in ("digest", "location")} | set(values)
    unknown = [name for name in call.output_parameters if name not in known]
    if unknown:
        raise InputError(f"stage {spec.command}: has no output parameter {', '.join(unknown)}")


def read_inputs(
    call: ExecutorInput, spec: StageSpec, params: Params, temporary: Path
) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the folder of each input, and the digests its producers reported."""
    folders: dict[str, Path] = {}
    digests: dict[str, str] = {}
    for port in spec.inputs:
        if port.many or port.shares:
            folders[port.name] = temporary / port.name
            entries = call.parameters.get(port.name)
            if port.shares:
                collect_shares(entries, folders[port.name], port.name, str(call.parameters.get("key", "")))
            else:
                collect(entries, folders[port.name], port.name, list(params.systems))
            continue
        folders[port.name] = named_artifact(call.inputs, spec, port.name).path
        digest = call.parameters.get(f"{port.name}_digest")
        if not isinstance(digest, str) or not digest:
            raise InputError(f"stage {spec.command}: parameter {port.name}_digest is missing, got {digest!r}")
        digests[port.name] = digest
    return folders, digests


def read_training(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint of each training that earlier tasks reported, cached ones too."""
    entries = parameters.get("training", [])
    texts = entries if isinstance(entries, list) else [entries]
    pairs = [text.split(" ") if isinstance(text, str) else [] for text in texts]
    if any(len(pair) != 2 or not all(pair) for pair in pairs) or texts is not entries:
        raise InputError(f"input training: must be a list of 'TRAINING FINGERPRINT' texts, got {entries!r}")
    return {pair[0]: pair[1] for pair in pairs}


def write_output(
    call: ExecutorInput,
    spec: StageSpec,
    key: str,
    done: Mapping[str, Done],
    outputs: Mapping[str, Artifact],
    more: Mapping[str, str] | None = None,
) -> None:
    """Write ``executor_output.json``: digests, locations and metadata of every output.

    Args:
        call: The message.
        spec: The stage or step.
        key: System or variant.
        done: Completion record of each output folder.
        outputs: Artifact of each output.
        more: Further output parameters.
    """
    values: dict[str, str] = dict(more or {})
    for name, record in done.items():
        values[f"{name}_digest"] = record.digest
        values[f"{name}_location"] = location(key, outputs[name].uri, record.digest)
    artifacts = {}
    for port in spec.outputs:
        artifact = outputs[port.name]
        metadata = _metadata(port, spec, key, artifact.path, done.get(port.name))
        artifacts[files_artifact(port)] = _runtime_artifact(artifact, metadata)
        if files_artifact(port) != port.name:
            artifacts[port.name] = _runtime_artifact(call.outputs[port.name], {"stage": spec.name})
    content = {
        "parameterValues": {name: values[name] for name in call.output_parameters},
        "artifacts": artifacts,
    }
    write_json(call.output_file, content)


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
