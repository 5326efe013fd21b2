"""Tasks in containers: what a container is given, and that its status is read before it is gone.

Docker itself is replaced here; docker/try.sh runs the whole pipeline in real containers.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import goldens
import pytest

from voxveil.kubeflow.docker import docker_execute, require_images
from voxveil.kubeflow.graph import Pipeline, Task, read_pipeline
from voxveil.kubeflow.local import run_pipeline
from voxveil.runtime.errors import InputError

pytest.importorskip("kfp", reason="needs the pipeline extra")
docker = pytest.importorskip("docker", reason="needs the pipeline extra")


class Engine:
    """A Docker engine with one container at a time, which ends as it is told to."""

    def __init__(self) -> None:
        self.status, self.lines = 0, [b"one\n", b"two \xff\n"]
        self.tags: list[str] = ["voxveil-cpu:1.0"]
        self.given: dict[str, Any] = {}
        self.acts: list[str] = []
        self.containers = self.images = self
        self.hangs = False
        self.killed = threading.Event()

    def __call__(self, **more: Any) -> Engine:
        return self

    def list(self) -> list[Any]:
        return [self]

    def info(self) -> dict[str, Any]:
        return {}

    def run(self, **given: Any) -> Engine:
        self.given = given
        return self

    def logs(self, **more: Any) -> Any:
        yield from self.lines
        if self.hangs:
            self.killed.wait(30)

    def wait(self) -> dict[str, int]:
        self.acts.append("wait")
        return {"StatusCode": 137 if self.killed.is_set() else self.status}

    def kill(self) -> None:
        self.killed.set()

    def remove(self, force: bool) -> None:
        self.acts.append("remove")

    def close(self) -> None:
        pass


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    monkeypatch.setattr(docker, "from_env", made)
    return made


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return read_pipeline(goldens.compiled("tiny", "evaluate_external"))


def task(command: tuple[str, ...] = ("voxveil", "x", "{{$}}"), **more: Any) -> Task:
    facts: dict[str, Any] = {"kubernetes": {}, "environment": {}} | more
    return Task("a-task", "a task", {}, {}, command, image="voxveil-cpu:1.0", cached=False, **facts)


def test_a_container_gets_its_message_its_folder_and_no_more(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow")
    monkeypatch.setenv("GITHUB_TOKEN", "not for containers")
    monkeypatch.delenv("VOXVEIL_LEDGER", raising=False)
    lines: list[str] = []
    execute = docker_execute(tmp_path, lines.append)
    (tmp_path / "a-task").mkdir()
    execute(task(environment={"VOXVEIL_CHECKPOINTS": "/checkpoints"}), {"inputs": {}})
    given = engine.given
    assert given["command"] == ["voxveil", "x", json.dumps({"inputs": {}})]
    assert given["volumes"] == {str(tmp_path): {"bind": str(tmp_path), "mode": "rw"}}
    assert given["read_only"] is True
    assert given["entrypoint"] == ""
    assert given["network_mode"] == "none"
    assert not given["user"].startswith("0:")
    assert "auto_remove" not in given
    environment = given["environment"]
    assert environment["MLFLOW_TRACKING_URI"] == "http://mlflow"
    assert environment["VOXVEIL_CHECKPOINTS"] == str(tmp_path / "checkpoints")
    assert environment["VOXVEIL_LEDGER"] == str(tmp_path / "ledger")
    assert "GITHUB_TOKEN" not in environment
    assert "PATH" not in environment
    assert lines == ["one", "two \\xff"]
    owner = os.getuid() or 1000
    assert (tmp_path / "a-task").stat().st_uid == (tmp_path / "ledger").stat().st_uid == owner


def test_a_container_that_fails_fast_fails_the_task(engine: Engine, tmp_path: Path) -> None:
    engine.status, engine.lines = 3, []
    (tmp_path / "a-task").mkdir()
    with pytest.raises(InputError, match="task a task: its container returned 3"):
        docker_execute(tmp_path, print)(task(), {})
    assert engine.acts == ["wait", "remove"], "its status was read before it was removed"


def test_a_container_that_reports_success_and_left_nothing_is_not_done(
    engine: Engine, tmp_path: Path, pipeline: Pipeline
) -> None:
    """What Kubeflow's own runner says of a container that is gone: success, whatever it was."""
    with pytest.raises(InputError, match="wrote no .*executor_output.json, although its command returned 0"):
        run_pipeline(
            pipeline,
            tmp_path,
            arguments={"location": "x"},
            report=lambda line: None,
            execute=docker_execute(tmp_path, lambda line: None),
        )


def test_a_container_past_its_timeout_is_stopped(engine: Engine, tmp_path: Path) -> None:
    engine.hangs = True
    (tmp_path / "a-task").mkdir()
    with pytest.raises(InputError, match="task a task: stopped after its timeout of 1 s"):
        docker_execute(tmp_path, lambda line: None)(task(kubernetes={"activeDeadlineSeconds": "1"}), {})
    assert engine.acts[-1] == "remove"


def test_an_image_that_is_not_there_is_named_before_any_work(engine: Engine, pipeline: Pipeline) -> None:
    wanted = pipeline.tasks[0].image
    with pytest.raises(InputError, match="not on this machine; docker/README.md says how it is built"):
        require_images(pipeline)
    engine.tags = [wanted]
    require_images(pipeline)


def test_an_engine_that_refuses_is_one_line(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**given: Any) -> None:
        raise docker.errors.APIError("no space\nleft on device")

    monkeypatch.setattr(engine, "run", refuse)
    (tmp_path / "a-task").mkdir()
    with pytest.raises(InputError, match="task a task: Docker refuses .*no space left on device"):
        docker_execute(tmp_path, print)(task(), {})
