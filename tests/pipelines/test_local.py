"""Running a compiled pipeline without Docker: what a task gets, and what counts as done."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import goldens
import pytest
import yaml
from messages import EXIT, GOOD, REPORT

from voxveil.kubeflow.graph import Pipeline, read_pipeline
from voxveil.kubeflow.local import executor_input, run_pipeline
from voxveil.runtime.errors import IncompleteInputError, InputError


def telling(variable: str) -> str:
    """Return a task that reports the value of a variable of its environment."""
    return f"{GOOD}import os; output['parameterValues']['data_location'] = os.environ['{variable}']\n{REPORT}"


def pipeline(*scripts: str, env: dict[str, str] | None = None, timeout: int = 0) -> Pipeline:
    """Return a pipeline whose tasks run Python scripts one after the other."""
    artifact = {"artifactType": {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"}}
    spec: dict[str, Any] = {
        "pipelineInfo": {"name": "test"},
        "components": {},
        "deploymentSpec": {"executors": {}},
        "root": {
            "dag": {"tasks": {}},
            "inputDefinitions": {"parameters": {"size": {"defaultValue": 3.0}, "word": {}}},
        },
    }
    platform: dict[str, Any] = {}
    for number, script in enumerate(scripts):
        name = f"task-{number}"
        inputs: dict[str, Any] = {"parameters": {"size": {"componentInputParameter": "size"}}}
        if number:
            before = f"task-{number - 1}"
            inputs["artifacts"] = {
                "data": {"taskOutputArtifact": {"producerTask": before, "outputArtifactKey": "data"}}
            }
            inputs["parameters"]["before"] = {
                "taskOutputParameter": {"producerTask": before, "outputParameterKey": "data_location"}
            }
            inputs["parameters"]["all"] = {
                "runtimeValue": {"constant": ["x", "<{{$.inputs.parameters['before']}}>"]}
            }
        spec["components"][f"comp-{name}"] = {
            "executorLabel": f"exec-{name}",
            "outputDefinitions": {
                "artifacts": {"data": artifact},
                "parameters": {"data_digest": {}, "data_location": {}},
            },
        }
        variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
        spec["deploymentSpec"]["executors"][f"exec-{name}"] = {
            "container": {"image": "x", "command": [sys.executable, "-c", script, "{{$}}"], "env": variables}
        }
        spec["root"]["dag"]["tasks"][name] = {
            "componentRef": {"name": f"comp-{name}"},
            "inputs": inputs,
            "taskInfo": {"name": f"title {number}"},
            "dependentTasks": [f"task-{number - 1}"] if number else [],
        }
        platform[f"exec-{name}"] = {"activeDeadlineSeconds": str(timeout)}
    second = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": platform}}}}
    return read_pipeline(yaml.safe_dump_all([spec, second]))


def seen(root: Path, number: int) -> dict[str, Any]:
    return json.loads((root / f"task-{number}" / "data" / "call.json").read_text())


def test_values_and_artifacts_reach_the_next_task(tmp_path: Path) -> None:
    lines: list[str] = []
    results = run_pipeline(pipeline(GOOD + REPORT, GOOD + REPORT), tmp_path, report=lines.append)
    first, second = (seen(tmp_path, number)["inputs"] for number in (0, 1))
    assert first == {"parameterValues": {"size": 3.0}, "artifacts": {}}
    assert second["artifacts"]["data"]["artifacts"][0]["uri"] == str(tmp_path / "task-0/data")
    location = results["task-0"]["data_location"]
    assert second["parameterValues"] == {"size": 3.0, "before": location, "all": ["x", f"<{location}>"]}
    assert [line.partition(":")[0] for line in lines] == ["title 0", "title 1"]


def test_arguments_win_over_defaults(tmp_path: Path) -> None:
    run_pipeline(pipeline(GOOD + REPORT), tmp_path, arguments={"size": 5}, report=lambda line: None)
    assert seen(tmp_path, 0)["inputs"]["parameterValues"] == {"size": 5}


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("raise SystemExit(3)", "title 0: its command returned 3"),
        ("import os; os.kill(os.getpid(), 9)", "title 0: its command returned -9"),
        ("pass", "title 0: wrote no .*executor_output.json, although its command returned 0"),
        (
            GOOD + "del output['parameterValues']['data_location']\n" + REPORT,
            "title 0: reported no data_location",
        ),
        (
            GOOD + "import shutil; shutil.rmtree(folder)\n" + REPORT,
            "title 0: output data .* is missing",
        ),
        (GOOD + "(folder / '_DONE.json').unlink()\n" + REPORT, "is unfinished"),
        (GOOD + "(folder / 'call.json').write_text('x')\n" + REPORT, "call.json changed"),
        (GOOD + "output['parameterValues']['data_digest'] = '0'\n" + REPORT, "expected 0"),
    ],
    ids=[
        "fails",
        "is killed",
        "writes nothing",
        "no parameter",
        "no artifact",
        "unfinished",
        "changed",
        "digest",
    ],
)
def test_what_is_not_whole_is_not_done(script: str, text: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, IncompleteInputError), match=text):
        run_pipeline(pipeline(script, GOOD + REPORT), tmp_path, report=lambda line: None)
    assert not (tmp_path / "task-1").exists()


def test_an_old_message_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    run_pipeline(pipeline(GOOD + REPORT), tmp_path, report=lambda line: None)
    with pytest.raises(InputError, match="wrote no"):
        run_pipeline(pipeline("pass"), tmp_path, report=lambda line: None)


def test_a_task_past_its_timeout_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="title 0: stopped after its timeout of 1 s"):
        run_pipeline(pipeline("import time; time.sleep(600)", timeout=1), tmp_path, report=lambda line: None)


def test_variables_of_the_file_reach_the_process(tmp_path: Path) -> None:
    script = telling("OURS")
    results = run_pipeline(pipeline(script, env={"OURS": "seen"}), tmp_path, report=lambda line: None)
    assert results["task-0"]["data_location"] == "seen"


def test_the_volume_of_checkpoints_becomes_a_folder(tmp_path: Path) -> None:
    script = telling("VOXVEIL_CHECKPOINTS")
    compiled = pipeline(script, env={"VOXVEIL_CHECKPOINTS": "/checkpoints"})
    results = run_pipeline(compiled, tmp_path, report=lambda line: None)
    assert results["task-0"]["data_location"] == str(tmp_path / "checkpoints")


def test_releases_are_registered_beside_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = telling("VOXVEIL_LEDGER")
    monkeypatch.delenv("VOXVEIL_LEDGER", raising=False)
    results = run_pipeline(pipeline(script), tmp_path, report=lambda line: None)
    assert results["task-0"]["data_location"] == str(tmp_path / "ledger")
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "mine"))
    results = run_pipeline(pipeline(script), tmp_path, report=lambda line: None)
    assert results["task-0"]["data_location"] == str(tmp_path / "mine")


@pytest.fixture
def handled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compile two tasks inside an exit handler by Kubeflow; return a function that runs them."""
    dsl = pytest.importorskip("kfp.dsl", reason="needs the pipeline extra")
    from kfp import compiler

    monkeypatch.setenv("TOLD", str(tmp_path / "told.json"))

    def run(first: str, last: str = EXIT, lines: list[str] | None = None) -> dict[str, Any]:
        def work(size, data_digest, data_location, data):
            return dsl.ContainerSpec(image="x", command=[sys.executable, "-c", first, "{{$}}"])

        def close(size, status):
            return dsl.ContainerSpec(image="x", command=[sys.executable, "-c", last, "{{$}}"])

        # kfp reads annotations as objects; this file's are text.
        outputs = dict.fromkeys(("data_digest", "data_location"), dsl.OutputPath(str))
        work.__annotations__ = {"size": int, **outputs, "data": dsl.Output[dsl.Dataset]}
        close.__annotations__ = {"size": int, "status": dsl.PipelineTaskFinalStatus}
        work_on, close_up = dsl.container_component(work), dsl.container_component(close)

        def both(size=3):
            with dsl.ExitHandler(close_up(size=size)):
                work_on(size=size)

        both.__annotations__ = {"size": int}
        compiler.Compiler().compile(dsl.pipeline(name="both")(both), str(tmp_path / "both.yaml"))
        compiled = read_pipeline((tmp_path / "both.yaml").read_text())
        return run_pipeline(compiled, tmp_path / "run", report=(lines if lines is not None else []).append)

    return run


def told(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "told.json").read_text())


def test_the_exit_task_is_told_of_success(handled: Any, tmp_path: Path) -> None:
    results = handled(GOOD + REPORT)
    assert sorted(results) == ["close", "work"]
    assert told(tmp_path)["status"]["state"] == "SUCCEEDED"
    assert told(tmp_path)["size"] == 3


def test_the_exit_task_runs_after_a_failure_and_is_told_of_it(handled: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="work: its command returned 3"):
        handled("raise SystemExit(3)")
    status = told(tmp_path)["status"]
    assert status["state"] == "FAILED"
    assert "work: its command returned 3" in status["error"]["message"]


def test_what_failed_first_is_what_is_raised(handled: Any) -> None:
    lines: list[str] = []
    with pytest.raises(InputError, match="work: its command returned 3"):
        handled("raise SystemExit(3)", "raise SystemExit(4)", lines)
    assert lines == ["then the exit task failed too: task close: its command returned 4; see the lines above"]


def test_a_failing_exit_task_fails_the_run(handled: Any) -> None:
    with pytest.raises(InputError, match="close: its command returned 4"):
        handled(GOOD + REPORT, "raise SystemExit(4)")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[", "not valid YAML"),
        ("a: 1", "not a compiled pipeline"),
        ("", "not a compiled pipeline"),
    ],
)
def test_what_is_no_pipeline_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_pipeline(text)


def test_our_message_is_the_one_kubeflow_renders(tmp_path: Path) -> None:
    """The local runner of kfp builds the same message for the same task."""
    kfp = pytest.importorskip("kfp", reason="needs the pipeline extra")
    from google.protobuf import json_format
    from kfp.local import executor_input_utils
    from kfp.pipeline_spec import pipeline_spec_pb2

    compiled = read_pipeline(goldens.compiled("tiny"))
    task = next(task for task in compiled.tasks if task.title == "train_pitch dp")
    made = {"prepare": {"public": {"name": "public", "uri": "/x/public", "metadata": {}}}}
    values = compiled.resolve(task, {}, {"prepare": {"public_digest": "0f", "private_digest": "0e"}})
    ours = executor_input(task, values, made, tmp_path / task.name)
    component = json_format.ParseDict(dict(task.component), pipeline_spec_pb2.ComponentSpec())
    theirs = executor_input_utils.executor_input_to_dict(
        executor_input_utils.construct_executor_input(
            component_spec=component,
            arguments={**values, "public": kfp.dsl.Dataset("public", "/x/public", {})},
            task_root=str(tmp_path / task.name),
            block_input_artifact=False,
        ),
        component,
    )
    assert plain(ours) == plain(theirs)


def plain(value: Any) -> Any:
    """Drop what carries nothing: empty metadata, and types of inputs, which no stage reads."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "type" and item not in ({}, [])}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
