"""Parser of the Kubeflow launcher's message ``{{$}}``: parameters, artifacts, output file."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["Artifact", "ExecutorInput", "local_path"]

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
