"""The exit handler: what it closes in MLflow, and what people are told."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import messages
import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.kubeflow.steps.running import run_step
from voxveil.kubeflow.webhook import notify
from voxveil.runtime.errors import InputError
from voxveil.stages.run import run_stage
from voxveil.tracking.client import Tracker, common_tags, connect
from voxveil.tracking.publish.send import publish
from voxveil.tracking.store import resolve_store

pytest.importorskip("mlflow", reason="needs the mlflow extra")

RUN = "6f0e-run"
SECRET = "T0K3N"


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent; answers the statuses in ``answers``, then 200."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), _Take)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hooks/{SECRET}"


class _Take(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.server.bodies.append(body)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def tracker(
    empty_store: Path, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Tracker:
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "DVC_", "KFP_")):
            monkeypatch.delenv(name)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("KFP_RUN_ID", RUN)
    monkeypatch.setenv("VOXVEIL_WEBHOOK", receiver.url)
    return connect(resolve_store())


def close(tmp_path: Path, state: str, message: str = "") -> None:
    status = {"state": state, "pipelineTaskName": "exit-handler-1"}
    if message:
        status["error"] = {"code": 2, "message": message}
    call = messages.message("close_run", tmp_path / "out", {"params": messages.tiny(), "status": status}, {})
    assert run_step("close_run", json.dumps(call)) == 0


def opened(tracker: Tracker, **tags: str) -> str:
    with tracker.burst() as client:
        full = common_tags() | {f"voxveil.{name}": value for name, value in tags.items()}
        return str(client.create_run(tracker.experiment_id, tags=full).info.run_id)


def state_of(tracker: Tracker, run_id: str) -> str:
    with tracker.burst() as client:
        return str(client.get_run(run_id).info.status)


def test_a_failed_run_closes_what_is_open_and_tells_people(
    tracker: Tracker, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = opened(tracker, fingerprint="f")
    monkeypatch.setenv("KFP_RUN_ID", "another")
    others = opened(tracker, fingerprint="g")
    monkeypatch.setenv("KFP_RUN_ID", RUN)
    close(tmp_path, "FAILED", "task score: out\nof memory")
    assert state_of(tracker, training) == "FAILED"
    assert state_of(tracker, others) == "RUNNING"
    (entry,) = tracker.find(role="failed")
    assert entry.info.status == "FAILED"
    assert entry.data.tags["voxveil.kfp_run"] == RUN
    assert entry.data.tags["voxveil.kfp_error"] == "task score: out of memory"
    (body,) = receiver.bodies
    assert body == {
        "text": f"voxveil run {RUN}: failed: task score: out of memory",
        "run": RUN,
        "event": "run",
        "state": "FAILED",
        "message": "task score: out of memory",
    }


def test_the_backends_run_gets_the_state(
    tracker: Tracker, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracker.burst() as client:
        theirs = client.create_run(tracker.experiment_id).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", theirs)
    training = opened(tracker, fingerprint="f")
    close(tmp_path, "CANCELED")
    assert state_of(tracker, theirs) == state_of(tracker, training) == "KILLED"
    assert tracker.find(role="failed") == []
    assert [body["state"] for body in receiver.bodies] == ["CANCELED"]


def test_a_run_that_succeeded_needs_no_entry_and_no_message(
    tracker: Tracker, receiver: Receiver, tmp_path: Path
) -> None:
    close(tmp_path, "SUCCEEDED")
    assert tracker.find(kfp_run=RUN) == []
    assert receiver.bodies == []


def test_the_report_adopts_the_backends_run(
    tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One parent per pipeline run: the one the backend opened, with the systems as its children."""
    with tracker.burst() as client:
        theirs = client.create_run(tracker.experiment_id, run_name="theirs").info.run_id
        client.log_param(theirs, "of", "the backend")
    monkeypatch.setenv("VOXVEIL_TRACKING", "off")
    systems = make_outputs(tmp_path, samples=False).systems
    for name in systems:
        evaluate(tmp_path, name)
    out = tmp_path / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", tmp_path / "params.yaml", inputs, {"report": out / "report"})
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("MLFLOW_RUN_ID", theirs)
    for _ in range(2):
        assert publish(out / "evaluate", out / "report") == theirs
    (parent,) = tracker.find(role="run")
    assert parent.info.run_id == theirs
    assert parent.data.params["of"] == "the backend"
    assert parent.data.tags["voxveil.run_key"] == parent.data.tags["voxveil.kfp_run"] == RUN
    assert "mlflow.parentRunId" not in parent.data.tags
    children = tracker.find(role="system")
    assert sorted(child.data.tags["voxveil.system"] for child in children) == sorted(systems)
    assert {child.data.tags["mlflow.parentRunId"] for child in children} == {theirs}
    close(tmp_path, "SUCCEEDED")
    assert state_of(tracker, theirs) == "FINISHED"


def test_a_run_of_another_experiment_is_not_adopted(
    tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracker.burst() as client:
        elsewhere = client.create_experiment("elsewhere")
        theirs = client.create_run(elsewhere).info.run_id
    monkeypatch.setenv("VOXVEIL_TRACKING", "off")
    chosen = {"original": SYSTEMS["original"]}
    make_outputs(tmp_path, chosen, samples=False)
    evaluate(tmp_path, "original")
    out = tmp_path / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", tmp_path / "params.yaml", inputs, {"report": out / "report"})
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("MLFLOW_RUN_ID", theirs)
    assert publish(out / "evaluate", out / "report") != theirs


def test_a_server_that_is_away_does_not_keep_people_uninformed(
    tracker: Tracker, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    close(tmp_path, "FAILED", "out of memory")
    assert "its runs were not closed" in capsys.readouterr().err
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize("status", [None, "FAILED", {"state": 3}])
def test_what_is_no_status_is_refused(status: Any, tracker: Tracker, tmp_path: Path) -> None:
    call = messages.message("close_run", tmp_path / "out", {"params": messages.tiny()}, {})
    if status is not None:
        call["inputs"]["parameterValues"]["status"] = status
    with pytest.raises(InputError, match="must be a final status of Kubeflow"):
        run_step("close_run", json.dumps(call))


def test_without_a_webhook_nothing_is_sent() -> None:
    assert notify("text", {}, {}) is False


def test_a_busy_receiver_is_tried_again(receiver: Receiver) -> None:
    receiver.answers = [503, 429]
    waits: list[float] = []
    assert notify("text", {"a": 1}, {"VOXVEIL_WEBHOOK": receiver.url}, waits.append)
    assert len(receiver.bodies) == 3
    assert waits == [2.0, 4.0]


@pytest.mark.parametrize(("answers", "tries"), [([404], 1), ([500, 500, 500], 3)])
def test_a_receiver_that_refuses_costs_a_warning_without_its_secret(
    answers: list[int], tries: int, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.answers = answers
    assert not notify("text", {}, {"VOXVEIL_WEBHOOK": receiver.url}, lambda seconds: None)
    assert len(receiver.bodies) == tries
    warning = capsys.readouterr().err
    assert "the webhook at 127.0.0.1 did not take the message" in warning
    assert SECRET not in warning


def test_a_receiver_that_is_away_costs_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:9/{SECRET}"
    assert not notify("text", {}, {"VOXVEIL_WEBHOOK": url}, lambda seconds: None)
    warning = capsys.readouterr().err
    assert "ConnectionRefusedError" in warning
    assert SECRET not in warning


def test_an_address_that_is_none_is_refused_without_showing_it() -> None:
    with pytest.raises(InputError, match="VOXVEIL_WEBHOOK: must begin with http:") as caught:
        notify("text", {}, {"VOXVEIL_WEBHOOK": f"file:///{SECRET}"})
    assert SECRET not in str(caught.value)
