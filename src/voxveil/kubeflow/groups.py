"""Expansion of exit handlers and fixed loops of a compiled pipeline into plain tasks.

Kubeflow puts the tasks of a group into a component of their own. What they take from outside are the inputs
of that component under other names; what others take from a loop are its outputs, lists over the iterations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from voxveil.runtime.errors import InputError

__all__ = ["COLLECTED", "NEEDS_SERVER", "without_exit_handler", "without_loops"]

Tasks = Mapping[str, Mapping[str, Any]]

#: Kind of a parameter's source, beside Kubeflow's own: the same output of every iteration, as a list.
COLLECTED = "collectedTaskOutputs"

#: What is said of every other kind of group.
NEEDS_SERVER = (
    "conditions, nested pipelines and loops need a Kubeflow server, but for plain tasks over a fixed list"
)


def without_exit_handler(
    tasks: Tasks, components: Mapping[str, Any]
) -> tuple[Tasks, tuple[str, Mapping[str, Any]] | None]:
    """Return the tasks inside an exit handler, as if they stood in the pipeline itself, and the exit task.

    Raises:
        InputError: There are several, or tasks beside it.
    """
    exits = {name: task for name, task in tasks.items() if _runs_at_the_end(task)}
    if not exits:
        return tasks, None
    groups = [name for name, task in tasks.items() if "dag" in components[task["componentRef"]["name"]]]
    if len(exits) != 1 or len(groups) != 1 or len(tasks) != 2 or _is_loop(tasks[groups[0]]):
        raise InputError("pipeline: more than one exit handler, or tasks beside it, need a Kubeflow server")
    ((name, last),) = exits.items()
    group = tasks[groups[0]]
    given = group.get("inputs", {})
    inner = {
        task_name: _given(task, given, lambda other: other)
        for task_name, task in components[group["componentRef"]["name"]]["dag"]["tasks"].items()
    }
    # It waits for the group, which is no more, and its trigger is what made it the last.
    return inner, (name, {key: value for key, value in last.items() if key != "triggerPolicy"})


def without_loops(tasks: Tasks, components: Mapping[str, Any]) -> Tasks:
    """Return the tasks with each loop over a fixed list replaced by the tasks of its iterations.

    The tasks of iteration N (from 1) of ``LOOP`` are called ``LOOP.N.TASK``.

    Raises:
        InputError: A loop is over what another task gives, or holds other groups.
    """
    loops = {name: task for name, task in tasks.items() if _is_loop(task)}
    if not loops:
        return tasks
    written = {name: dict(_iterations(name, task, components)) for name, task in loops.items()}
    outside = {name: task for name, task in tasks.items() if name not in loops}
    return {
        name: _after_loops(task, loops, written, components)
        for name, task in {
            **outside,
            **{k: v for iterations in written.values() for k, v in iterations.items()},
        }.items()
    }


def _iterations(
    name: str, loop: Mapping[str, Any], components: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tasks of every iteration by their new names."""
    title = _title(name, loop)
    tasks = _inside(loop, components)
    nested = any("dag" in components[task["componentRef"]["name"]] for task in tasks.values())
    iterator = loop.get("parameterIterator", {"items": {}})
    if "triggerPolicy" in loop or nested or "raw" not in iterator["items"]:
        raise InputError(f"task {title}: {NEEDS_SERVER}")
    for number, item in enumerate(json.loads(iterator["items"]["raw"]), 1):

        def named(other: str, number: int = number) -> str:
            return _named(name, number, other)

        inputs = loop.get("inputs", {})
        given = {
            "parameters": {
                **inputs.get("parameters", {}),
                iterator["itemInput"]: {"runtimeValue": {"constant": item}},
            },
            "artifacts": inputs.get("artifacts", {}),
        }
        for inner, task in tasks.items():
            copied = dict(_given(task, given, named))
            before = [named(other) for other in task.get("dependentTasks", [])]
            copied["dependentTasks"] = [*before, *loop.get("dependentTasks", [])]
            copied["taskInfo"] = {"name": f"{_title(inner, task)} {item}"}
            yield named(inner), copied


def _given(
    task: Mapping[str, Any], given: Mapping[str, Any], named: Callable[[str], str]
) -> Mapping[str, Any]:
    """Return a task of a group that takes from where the group did.

    Args:
        task: A task inside.
        given: The inputs of the group.
        named: New name of a task inside.
    """
    inputs: dict[str, Any] = {}
    for kind, outer, inner in (
        ("parameters", "componentInputParameter", "taskOutputParameter"),
        ("artifacts", "componentInputArtifact", "taskOutputArtifact"),
    ):
        inputs[kind] = {}
        for name, source in task.get("inputs", {}).get(kind, {}).items():
            if outer in source:
                if source.keys() - {outer}:
                    raise InputError(
                        f"task {_title('', task)}: {name} is part of a loop's item: {NEEDS_SERVER}"
                    )
                source = given[kind][source[outer]]
            elif inner in source:
                source = {inner: {**source[inner], "producerTask": named(source[inner]["producerTask"])}}
            inputs[kind][name] = source
    return {**task, "inputs": inputs}


def _after_loops(
    task: Mapping[str, Any],
    loops: Tasks,
    written: Mapping[str, Tasks],
    components: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return a task that waits for iterations, and takes lists from them, where it named loops."""
    before: list[str] = []
    for other in task.get("dependentTasks", []):
        before += list(written[other]) if other in loops else [other]
    inputs = {kind: dict(sources) for kind, sources in task.get("inputs", {}).items()}
    for name, source in inputs.get("artifacts", {}).items():
        if source.get("taskOutputArtifact", {}).get("producerTask") in loops:
            raise InputError(f"task {_title('', task)}: {name}: collected artifacts need a Kubeflow server")
    for name, source in inputs.get("parameters", {}).items():
        output = source.get("taskOutputParameter", {})
        if output.get("producerTask") in loops:
            loop = loops[output["producerTask"]]
            inputs["parameters"][name] = {COLLECTED: _collected(output, loop, components)}
    return {**task, "inputs": inputs, "dependentTasks": before}


def _collected(
    output: Mapping[str, Any], loop: Mapping[str, Any], components: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return where an output of a loop comes from, iteration by iteration."""
    name = output["producerTask"]
    dag = components[loop["componentRef"]["name"]]["dag"]
    inner = dag["outputs"]["parameters"][output["outputParameterKey"]]["valueFromParameter"]
    count = len(json.loads(loop["parameterIterator"]["items"]["raw"]))
    return [
        {
            "producerTask": _named(name, number, inner["producerSubtask"]),
            "outputParameterKey": inner["outputParameterKey"],
        }
        for number in range(1, count + 1)
    ]


def _named(loop: str, number: int, task: str) -> str:
    return f"{loop}.{number}.{task}"


def _inside(group: Mapping[str, Any], components: Mapping[str, Any]) -> Tasks:
    tasks: Tasks = components[group["componentRef"]["name"]]["dag"]["tasks"]
    return tasks


def _title(name: str, task: Mapping[str, Any]) -> str:
    return str(task.get("taskInfo", {}).get("name", name))


def _is_loop(task: Mapping[str, Any]) -> bool:
    return "parameterIterator" in task or "artifactIterator" in task


def _runs_at_the_end(task: Mapping[str, Any]) -> bool:
    return bool(task.get("triggerPolicy", {}).get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED")
