"""Reader of a compiled pipeline: tasks in topological order, with their resolved parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from voxveil.kubeflow.groups import COLLECTED, NEEDS_SERVER, without_exit_handler, without_loops
from voxveil.runtime.errors import InputError

__all__ = ["Pipeline", "Task", "read_arguments", "read_pipeline"]

# The C loader is ten times faster on files of thousands of lines.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Kubeflow's parameter types in Python's and people's words.
_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "STRUCT": (dict, "an object"),
    "LIST": (list, "a list"),
    "BOOLEAN": (bool, "true or false"),
    "NUMBER_INTEGER": (int, "a whole number"),
    "NUMBER_DOUBLE": ((int, float), "a number"),
}

_CHANNEL = re.compile(r"\{\{\$\.inputs\.parameters\['([^']+)'\]\}\}")


@dataclass(frozen=True)
class Task:
    """A task of a compiled pipeline.

    Attributes:
        name: Its id in the file.
        title: The name people read.
        inputs: Its ``inputs`` section: where each parameter and artifact comes from.
        component: Its component: types of its inputs and outputs.
        command: Words of its command; one is ``{{$}}``.
        environment: Variables set in the file.
        image: The image it runs in.
        kubernetes: Its part of the second document.
        cached: Whether Kubeflow may take its outputs from the cache.
    """

    name: str
    title: str
    inputs: Mapping[str, Any]
    component: Mapping[str, Any]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    image: str
    kubernetes: Mapping[str, Any]
    cached: bool
    retry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def timeout(self) -> int | None:
        """Seconds after which the task is stopped, None without a limit."""
        return int(self.kubernetes.get("activeDeadlineSeconds", 0)) or None

    def command_for(self, message: Mapping[str, Any]) -> list[str]:
        """Return the words of the command with the launcher's message in place of ``{{$}}``."""
        text = json.dumps(message, allow_nan=False)
        return [text if word == "{{$}}" else word for word in self.command]

    @property
    def output_artifacts(self) -> Mapping[str, Any]:
        """Type of each output artifact."""
        found: Mapping[str, Any] = self.component.get("outputDefinitions", {}).get("artifacts", {})
        return found

    @property
    def output_parameters(self) -> tuple[str, ...]:
        """Names of the output parameters."""
        return tuple(self.component.get("outputDefinitions", {}).get("parameters", {}))


@dataclass(frozen=True)
class Pipeline:
    """A compiled pipeline.

    Attributes:
        name: Its name.
        tasks: Its tasks, each after those it depends on.
        defaults: Default arguments.
        parameters: Kubeflow's type of each argument (``STRING``, ``STRUCT``, ...).
        exit: The task that runs at the end whatever became of the others, None where there is none.
    """

    name: str
    tasks: tuple[Task, ...]
    defaults: Mapping[str, Any]
    parameters: Mapping[str, str] = field(default_factory=dict)
    exit: Task | None = None

    def resolve(
        self,
        task: Task,
        arguments: Mapping[str, Any],
        results: Mapping[str, Any],
        status: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the parameter values of ``task``.

        Args:
            task: One of the tasks.
            arguments: Arguments of the pipeline; defaults fill in.
            results: Output parameters by task name.
            status: For the exit task: what became of the others.
        """
        given = {**self.defaults, **arguments}
        values: dict[str, Any] = {}
        for name, source in task.inputs.get("parameters", {}).items():
            if "componentInputParameter" in source:
                values[name] = given[source["componentInputParameter"]]
            elif "taskOutputParameter" in source:
                output = source["taskOutputParameter"]
                values[name] = results[output["producerTask"]][output["outputParameterKey"]]
            elif COLLECTED in source:
                values[name] = [
                    results[collected["producerTask"]][collected["outputParameterKey"]]
                    for collected in source[COLLECTED]
                ]
            elif "taskFinalStatus" in source and status is not None:
                values[name] = dict(status)
            elif "runtimeValue" in source:
                values[name] = source["runtimeValue"]["constant"]
            else:
                raise InputError(
                    f"task {task.title}: parameter {name} comes from {', '.join(source)}: unknown"
                )
        return {name: _filled(value, values) for name, value in values.items()}


def read_pipeline(text: str) -> Pipeline:
    """Read the YAML text of a compiled pipeline, both documents.

    Raises:
        InputError: It is no pipeline of plain tasks and loops over fixed lists (conditions, and loops over
            what a task gives, need a Kubeflow server).
    """
    try:
        documents = list(yaml.load_all(text, Loader=_LOADER))
        spec = documents[0]
        kubernetes = _kubernetes(documents[1:])
        executors = spec["deploymentSpec"]["executors"]
        inner, last = without_exit_handler(spec["root"]["dag"]["tasks"], spec["components"])
        plain = without_loops(inner, spec["components"])
        tasks = [
            _task(name, content, spec["components"], executors, kubernetes)
            for name, content in _ordered(plain)
        ]
        final = None if last is None else _task(*last, spec["components"], executors, kubernetes)
        inputs = spec["root"].get("inputDefinitions", {}).get("parameters", {})
        defaults = {name: value["defaultValue"] for name, value in inputs.items() if "defaultValue" in value}
        types = {name: str(value.get("parameterType", "")) for name, value in inputs.items()}
        return Pipeline(spec["pipelineInfo"]["name"], tuple(tasks), defaults, types, final)
    except yaml.YAMLError as error:
        raise InputError(f"pipeline: not valid YAML ({' '.join(str(error).split())})") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise InputError(f"pipeline: not a compiled pipeline ({error!r})") from None


def read_arguments(pipeline: Pipeline, settings: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of ``NAME=VALUE`` texts, each of its declared type.

    Raises:
        InputError: Not of this form, unknown, twice, or of another type.
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise InputError(f"--set {setting}: must be NAME=VALUE")
        if name not in pipeline.parameters:
            known = ", ".join(sorted(pipeline.parameters)) or "none"
            raise InputError(
                f"--set {setting}: pipeline {pipeline.name} has no argument {name!r}; it has: {known}"
            )
        if name in found:
            raise InputError(f"--set {setting}: {name} is given twice")
        found[name] = _value(text, pipeline.parameters[name], setting)
    return found


def _value(text: str, kind: str, setting: str) -> Any:
    if kind in ("STRING", ""):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    wanted = _TYPES.get(kind)
    fits = (
        wanted is not None
        and isinstance(value, wanted[0])
        and (isinstance(value, bool) == (kind == "BOOLEAN"))
    )
    if not fits:
        raise InputError(f"--set {setting}: must be {wanted[1] if wanted else kind} as JSON")
    return value


def _task(
    name: str,
    content: Mapping[str, Any],
    components: Mapping[str, Any],
    executors: Mapping[str, Any],
    kubernetes: Mapping[str, Any],
) -> Task:
    title = content.get("taskInfo", {}).get("name", name)
    component = components[content["componentRef"]["name"]]
    label = component.get("executorLabel")
    if label is None or "triggerPolicy" in content:
        raise InputError(f"task {title}: {NEEDS_SERVER}")
    container = executors[label]["container"]
    return Task(
        name,
        title,
        content.get("inputs", {}),
        component,
        (*container.get("command", []), *container.get("args", [])),
        {item["name"]: item["value"] for item in container.get("env", [])},
        container["image"],
        kubernetes.get(label, {}),
        bool(content.get("cachingOptions", {}).get("enableCache", False)),
        content.get("retryPolicy", {}),
    )


def _kubernetes(documents: list[Any]) -> Mapping[str, Any]:
    if not documents:
        return {}
    found: Mapping[str, Any] = documents[0]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    return found


def _ordered(tasks: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    waiting = dict(sorted(tasks.items()))
    done: set[str] = set()
    while waiting:
        ready = [name for name, task in waiting.items() if done.issuperset(task.get("dependentTasks", []))]
        if not ready:
            raise InputError(f"pipeline: tasks wait for each other: {', '.join(waiting)}")
        for name in ready:
            yield name, waiting.pop(name)
        done.update(ready)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill placeholders of earlier tasks' outputs inside constants, as a launcher does."""
    if isinstance(value, str):
        return _CHANNEL.sub(lambda match: str(values[match[1]]), value)
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return value
