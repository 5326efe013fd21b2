"""Executor inputs as Kubeflow's launcher renders them, and small stages and scripts for real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.cli.main import main
from voxveil.config import Params
from voxveil.config.compose import compose, to_mapping
from voxveil.kubeflow.graph import Task
from voxveil.kubeflow.steps.registry import spec_of
from voxveil.runtime.atomic import write_json, write_text
from voxveil.runtime.done import Done, finish
from voxveil.runtime.errors import InputError
from voxveil.stages.context import StageContext
from voxveil.stages.registry import StageSpec

ROOT = Path(__file__).resolve().parents[2]

#: A task that writes two outputs: a finished folder and the digest of it, like every stage.
GOOD = """
import json, sys
from pathlib import Path
from voxveil.runtime.done import finish
call = json.loads(sys.argv[1])
folder = Path(call["outputs"]["artifacts"]["data"]["artifacts"][0]["uri"])
folder.mkdir(exist_ok=True)
(folder / "call.json").write_text(json.dumps(call))
digest = finish(folder, "prepare", None).digest
output = {"parameterValues": {"data_digest": digest, "data_location": "a " + digest}, "artifacts": {}}
"""
REPORT = "Path(call['outputs']['outputFile']).write_text(json.dumps(output))\n"
#: A task that keeps what it was told of the others.
EXIT = """
import json, sys
from pathlib import Path
call = json.loads(sys.argv[1])
Path(call["outputs"]["outputFile"]).write_text(json.dumps({"parameterValues": {}, "artifacts": {}}))
Path(__import__("os").environ["TOLD"]).write_text(json.dumps(call["inputs"]["parameterValues"]))
"""


def tiny_params() -> Params:
    """Return the parameters of scale tiny."""
    return compose(ROOT / "params/tiny.yaml")


def tiny() -> dict[str, Any]:
    """Return the parameters of scale tiny, whole numbers turned into floats as Kubeflow does."""
    return as_floats(to_mapping(tiny_params()))


def as_floats(value: Any) -> Any:
    """Return ``value`` as it comes out of a protobuf Struct."""
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def made(folder: Path, stage: str, key: str = "", text: str = "content") -> Done:
    """Make a finished output of an earlier stage."""
    write_text(folder / "file.txt", text)
    return finish(folder, stage, key or None)


def message(
    stage: str, folder: Path, parameters: dict[str, Any], artifacts: dict[str, Path], **more: str
) -> dict[str, Any]:
    """Return the executor input of one task whose outputs go to ``folder``.

    Args:
        stage: Stem of the stage.
        folder: Where outputs go.
        parameters: Input parameters.
        artifacts: Path of each input artifact.
        more: URI of an output artifact, by name, where it is not the path in ``folder``.
    """
    spec = spec_of(stage)
    names = [port.name for port in spec.outputs]
    names += [f"{port.name}_files" for port in spec.outputs if port.kind == "HTML"]
    digests = [f"{port.name}_digest" for port in spec.outputs if not port.copy_of]
    digests += ["fingerprint"] if spec.trains else []
    located = {"evaluate": "metrics", "anonymize": "samples", "score": "scores"}
    digests += [f"{located[stage]}_location"] if stage in located else []
    return {
        "inputs": {
            "parameterValues": parameters,
            "artifacts": {name: runtime(name, str(path)) for name, path in artifacts.items()},
        },
        "outputs": {
            "parameters": {name: {"outputFile": str(folder / name)} for name in digests},
            "artifacts": {name: runtime(name, more.get(name, str(folder / name))) for name in names},
            "outputFile": str(folder / "executor_output.json"),
        },
    }


def runtime(name: str, uri: str) -> dict[str, Any]:
    """Return the list that holds one runtime artifact."""
    return {
        "artifacts": [{"name": name, "uri": uri, "type": {"schemaTitle": "system.Artifact"}, "metadata": {}}]
    }


def here(task: Task, message: Mapping[str, Any]) -> None:
    """Run a task's command in this process."""
    words = [json.dumps(message) if word == "{{$}}" else word for word in task.command]
    assert words[0] == "voxveil"
    if main(words[1:]):
        raise InputError(f"{task.title} failed")


def reported(folder: Path) -> dict[str, Any]:
    """Return what the stage wrote for the launcher."""
    return json.loads((folder / "executor_output.json").read_text())


class Recorder:
    """A stage that records what it was given and writes a file to every output."""

    def __init__(self, spec: StageSpec, numbers: dict[str, Any] | None = None) -> None:
        self.spec, self.numbers = spec, numbers or {}
        self.contexts: list[StageContext] = []

    def run(self, context: StageContext) -> None:
        """Write every output."""
        self.contexts.append(context)
        for port in self.spec.outputs:
            if not port.copy_of:
                write_text(context.outputs[port.name] / "file.txt", f"{context.stage} {context.key}")
            if port.kind == "HTML":
                write_text(context.outputs[port.name] / "index.html", "<p>page</p>")
        for port in self.spec.outputs:
            source, _, file = port.copy_of.format(key=context.key).partition("/")
            if file.endswith(".json"):
                write_json(context.outputs[source] / file, self.numbers)
            elif file:
                write_text(context.outputs[source] / file, "step,loss\n")
