"""Local runs of a compiled pipeline, each task as a subprocess or in a container.

It does what Kubeflow's launcher does with the compiled file, and then looks for itself at what
a task left behind: a task counts as done only if its command returned 0, every declared output
is there, every output folder holds a completion record and the digest is the reported one.

``run.json`` in the folder of the run tells what Kubeflow's server would: state, arguments, and what each
task reported. ``voxveil pipeline fetch`` reads it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from voxveil.kubeflow.graph import Pipeline, Task
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError, VoxveilError

__all__ = ["RECORD", "Execute", "check_outputs", "executor_input", "run_pipeline", "task_environment"]

#: In the folder of a run: its state, its arguments and what its tasks reported.
RECORD = "run.json"

#: Runs the command of a task with its message.
Execute = Callable[[Task, Mapping[str, Any]], None]


def run_pipeline(
    pipeline: Pipeline,
    root: Path,
    *,
    arguments: Mapping[str, Any] | None = None,
    report: Callable[[str], None] = print,
    execute: Execute | None = None,
) -> dict[str, dict[str, Any]]:
    """Run every task and return the output parameters of each by task name.

    Args:
        pipeline: A compiled pipeline.
        root: Folder that gets one folder per task; made if need be.
        arguments: Arguments of the pipeline; its defaults fill in.
        report: Called with one line per finished task.
        execute: Runs the command of a task; as a process of this environment unless given.

    Raises:
        InputError: A task failed or left less than it declares; the tasks after it were not started, except
            the exit task.
    """
    root = Path(root).resolve()
    root.mkdir(parents=True, exist_ok=True)
    run = execute or (lambda task, message: _execute(task, message, root))
    progress = _Progress(pipeline, root, arguments or {}, run, report)
    progress.record("RUNNING")
    try:
        for task in pipeline.tasks:
            progress.run(task)
    except (Exception, KeyboardInterrupt) as error:
        state = "CANCELED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        progress.record(state)
        try:
            progress.end({"state": state, "error": {"code": 2, "message": str(error)}})
        except VoxveilError as second:
            # What failed first is what people must read.
            report(f"then the exit task failed too: {second}")
        raise
    try:
        progress.end({"state": "SUCCEEDED"})
    except (Exception, KeyboardInterrupt):
        progress.record("FAILED")
        raise
    progress.record("SUCCEEDED")
    return progress.results


class _Progress:
    """Outputs of the finished tasks of a run."""

    def __init__(
        self,
        pipeline: Pipeline,
        root: Path,
        arguments: Mapping[str, Any],
        execute: Execute,
        report: Callable[[str], None],
    ) -> None:
        self._pipeline, self._root, self._arguments = pipeline, root, arguments
        self._execute, self._report = execute, report
        self._artifacts: dict[str, dict[str, Any]] = {}
        self.results: dict[str, dict[str, Any]] = {}

    def run(self, task: Task, status: Mapping[str, Any] | None = None) -> None:
        """Run one task and collect its outputs if they are complete."""
        folder = self._root / task.name
        folder.mkdir(exist_ok=True)
        values = self._pipeline.resolve(task, self._arguments, self.results, status)
        message = executor_input(task, values, self._artifacts, folder)
        # An old message would be taken for the new one if the task wrote none.
        (folder / "executor_output.json").unlink(missing_ok=True)
        started = time.monotonic()
        self._execute(task, message)
        self.results[task.name], self._artifacts[task.name] = check_outputs(task, message)
        self._report(f"{task.title}: done in {time.monotonic() - started:.1f} s")

    def record(self, state: str) -> None:
        """Write the description and progress of this run."""
        content = {
            "format": 1,
            "pipeline": self._pipeline.name,
            "state": state,
            "arguments": {**self._pipeline.defaults, **self._arguments},
            "tasks": self.results,
        }
        write_json(self._root / RECORD, content)

    def end(self, status: Mapping[str, Any]) -> None:
        """Run the exit task, if there is one."""
        if self._pipeline.exit is not None:
            self.run(self._pipeline.exit, {**status, "pipelineTaskName": "exit-handler-1"})


def executor_input(
    task: Task, parameters: Mapping[str, Any], artifacts: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return the launcher's message ``{{$}}``.

    Args:
        task: The task to run.
        parameters: Its parameter values.
        artifacts: Output artifacts of earlier tasks: task name -> output name -> runtime artifact.
        folder: Where its outputs go.
    """
    given = {}
    for name, source in task.inputs.get("artifacts", {}).items():
        output = source["taskOutputArtifact"]
        given[name] = {"artifacts": [artifacts[output["producerTask"]][output["outputArtifactKey"]]]}
    outputs = {
        name: {
            "artifacts": [
                {"name": name, "type": spec["artifactType"], "uri": str(folder / name), "metadata": {}}
            ]
        }
        for name, spec in task.output_artifacts.items()
    }
    return {
        "inputs": {"parameterValues": dict(parameters), "artifacts": given},
        "outputs": {
            "parameters": {name: {"outputFile": str(folder / name)} for name in task.output_parameters},
            "artifacts": outputs,
            "outputFile": str(folder / "executor_output.json"),
        },
    }


def check_outputs(task: Task, message: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check all outputs of a finished task; return its output parameters and artifacts.

    Raises:
        InputError: Naming the task and what is missing.
    """
    file = Path(message["outputs"]["outputFile"])
    if not file.is_file():
        raise InputError(f"task {task.title}: wrote no {file}, although its command returned 0")
    written = read_json(file)
    parameters: dict[str, Any] = written.get("parameterValues", {})
    for name in task.output_parameters:
        if name not in parameters:
            raise InputError(f"task {task.title}: reported no {name}, although its command returned 0")
    artifacts = {}
    for name in task.output_artifacts:
        expected = message["outputs"]["artifacts"][name]["artifacts"][0]
        path = Path(expected["uri"])
        if not path.exists():
            raise InputError(f"task {task.title}: output {name} ({path}) is missing")
        if path.is_dir():
            digest = parameters.get(f"{name}_digest") or parameters.get(
                f"{name.removesuffix('_files')}_digest"
            )
            require_done(path, f"{name} of task {task.title}", digest=digest)
        reported = written.get("artifacts", {}).get(name, {}).get("artifacts", [{}])[0]
        artifacts[name] = {**expected, "metadata": reported.get("metadata", {})}
    return parameters, artifacts


def _execute(task: Task, message: Mapping[str, Any], root: Path) -> None:
    command = task.command_for(message)
    environment = task_environment(task, root, os.environ)
    folders = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    environment["PATH"] = os.pathsep.join(folders)
    try:
        done = subprocess.run(command, env=environment, timeout=task.timeout, check=False)
    except FileNotFoundError:
        raise InputError(f"task {task.title}: no command {command[0]!r} on this machine") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"task {task.title}: stopped after its timeout of {task.timeout} s") from None
    if done.returncode:
        raise InputError(f"task {task.title}: its command returned {done.returncode}; see the lines above")


def task_environment(task: Task, root: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a task: given ones, the file's, and those of volumes.

    Args:
        task: The task.
        root: Folder of the run; checkpoints and the register of releases go there.
        given: Variables of the machine.
    """
    environment = {**given, **task.environment}
    if "VOXVEIL_CHECKPOINTS" in task.environment:
        environment["VOXVEIL_CHECKPOINTS"] = str(root / "checkpoints")
    environment.setdefault("VOXVEIL_LEDGER", str(root / "ledger"))
    return environment
