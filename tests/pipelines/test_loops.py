"""Loops over a fixed list on this machine: every iteration is a task, what is collected comes as a list."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from messages import EXIT, GOOD, REPORT

pytest.importorskip("kfp", reason="needs the pipeline extra")

from kfp import compiler, dsl

from voxveil.kubeflow.graph import Pipeline, read_pipeline
from voxveil.kubeflow.groups import NEEDS_SERVER
from voxveil.kubeflow.local import run_pipeline
from voxveil.runtime.errors import InputError

WORK = f"{GOOD}output['parameterValues']['data_location'] = str(call['inputs']['parameterValues'])\n{REPORT}"


def component(name: str, script: str, inputs: dict[str, Any], *, artifact: bool = True) -> Any:
    """Return a component that runs a script; kfp reads annotations as objects, and this file's are text."""
    outputs: dict[str, Any] = {}
    if artifact:
        outputs = {name: dsl.OutputPath(str) for name in ("data_digest", "data_location")}
        outputs["data"] = dsl.Output[dsl.Dataset]
    words = [*inputs, *outputs]
    space: dict[str, Any] = {"dsl": dsl, "command": [sys.executable, "-c", script, "{{$}}"]}
    text = f"def {name}({', '.join(words)}):\n    return dsl.ContainerSpec(image='x', command=command)"
    exec(text, space)
    space[name].__annotations__ = {**inputs, **outputs}
    return dsl.container_component(space[name])


MAKE = component("make", GOOD + REPORT, {"size": int})
SHARE = component("share", WORK, {"size": int, "share": str, "given": dsl.Input[dsl.Dataset]})
GATHER = component("gather", WORK, {"shares": list[str]})
CLOSE = component("close", EXIT, {"size": int, "status": dsl.PipelineTaskFinalStatus}, artifact=False)


def compiled(build: Callable[..., None], tmp_path: Path) -> Pipeline:
    """Compile by Kubeflow, read back."""

    def whole(size=3):
        build(size)

    whole.__annotations__ = {"size": int}
    compiler.Compiler().compile(dsl.pipeline(name="whole")(whole), str(tmp_path / "whole.yaml"))
    return read_pipeline((tmp_path / "whole.yaml").read_text())


def shared(size: Any, share: Any = SHARE) -> None:
    """A task, a loop over what it made, a task that collects."""
    first = MAKE(size=size)
    with dsl.ParallelFor(["1-of-2", "2-of-2"], name="shared", parallelism=1) as number:
        part = share(size=size, share=number, given=first.outputs["data"])
    GATHER(shares=dsl.Collected(part.outputs["data_location"]))


def handled(size: Any) -> None:
    """The same inside an exit handler."""
    with dsl.ExitHandler(CLOSE(size=size)):
        shared(size)


@pytest.mark.parametrize("build", [shared, handled])
def test_iterations_run_and_their_outputs_are_collected(
    build: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLD", str(tmp_path / "told.json"))
    pipeline = compiled(build, tmp_path)
    lines: list[str] = []
    results = run_pipeline(pipeline, tmp_path / "run", arguments={"size": 5}, report=lines.append)
    titles = ["make", "share 1-of-2", "share 2-of-2", "gather", *(["close"] if build is handled else [])]
    assert [line.partition(":")[0] for line in lines] == titles
    names = [task.name for task in pipeline.tasks]
    parts = [name for name in names if name.endswith(".share")]
    calls = [json.loads((tmp_path / "run" / name / "data/call.json").read_text()) for name in parts]
    for number, call in enumerate(calls, 1):
        assert call["inputs"]["parameterValues"] == {"size": 5, "share": f"{number}-of-2"}
        assert call["inputs"]["artifacts"]["given"]["artifacts"][0]["uri"] == str(tmp_path / "run/make/data")
    call = json.loads((tmp_path / "run/gather/data/call.json").read_text())
    shares = call["inputs"]["parameterValues"]["shares"]
    assert shares == [results[name]["data_location"] for name in parts]
    assert len(set(shares)) == 2
    if build is handled:
        assert json.loads((tmp_path / "told.json").read_text())["status"]["state"] == "SUCCEEDED"


def test_a_failing_iteration_fails_the_run_before_anything_is_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLD", str(tmp_path / "told.json"))
    script = f"{GOOD}assert call['inputs']['parameterValues']['share'] != '2-of-2'\n{REPORT}"
    dies = component("share", script, {"size": int, "share": str, "given": dsl.Input[dsl.Dataset]})

    def build(size: Any) -> None:
        with dsl.ExitHandler(CLOSE(size=size)):
            shared(size, dies)

    with pytest.raises(InputError, match="task share 2-of-2: its command returned 1"):
        run_pipeline(compiled(build, tmp_path), tmp_path / "run", report=lambda line: None)
    assert not (tmp_path / "run/gather").exists()
    assert json.loads((tmp_path / "told.json").read_text())["status"]["state"] == "FAILED"


def test_loops_wait_for_each_other(tmp_path: Path) -> None:
    """The tasks of a loop may follow one another, and a second loop the first."""

    def build(size: Any) -> None:
        first = MAKE(size=size)
        with dsl.ParallelFor([1, 2]) as number:
            part = MAKE(size=number)
            SHARE(size=number, share=part.outputs["data_location"], given=first.outputs["data"])
        with dsl.ParallelFor(["a"]) as word:
            SHARE(size=size, share=word, given=first.outputs["data"]).after(part)

    results = run_pipeline(compiled(build, tmp_path), tmp_path / "run", report=lambda line: None)
    order = [name.rpartition(".")[2] for name in results]
    assert order == ["make", "make-2", "make-2", "share", "share", "share-2"]
    given = [json.loads((tmp_path / "run" / name / "data/call.json").read_text()) for name in results]
    sizes = [call["inputs"]["parameterValues"]["size"] for call in given]
    assert sizes == [3, 1, 2, 1, 2, 3]
    # Each takes from the task of its own iteration.
    shares = [call["inputs"]["parameterValues"]["share"] for call in given[3:5]]
    assert shares == [results[name]["data_location"] for name in list(results)[1:3]]


def over_an_output(size: Any) -> None:
    numbers = component("numbers", "", {"size": int, "made": dsl.OutputPath(list)}, artifact=False)
    with dsl.ParallelFor(numbers(size=size).outputs["made"]) as number:
        MAKE(size=number)


def in_each_other(size: Any) -> None:
    with dsl.ParallelFor([1, 2]), dsl.ParallelFor([3, 4]) as number:
        MAKE(size=number)


def over_parts(size: Any) -> None:
    with dsl.ParallelFor([{"a": 1}, {"a": 2}]) as item:
        MAKE(size=item.a)


def in_a_condition(size: Any) -> None:
    with dsl.If(size == 3):
        MAKE(size=size)


def collected_artifacts(size: Any) -> None:
    with dsl.ParallelFor([1, 2]) as number:
        made = MAKE(size=number)
    take = component("take", GOOD + REPORT, {"given": dsl.Input[list[dsl.Dataset]]})
    take(given=dsl.Collected(made.outputs["data"]))


@pytest.mark.parametrize("build", [over_an_output, in_each_other, over_parts, in_a_condition])
def test_other_groups_need_a_server(build: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        compiled(build, tmp_path)
    assert str(caught.value).startswith("task ")
    assert str(caught.value).endswith(NEEDS_SERVER)


def test_collected_artifacts_need_a_server(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="take: given: collected artifacts need a Kubeflow server"):
        compiled(collected_artifacts, tmp_path)
