"""Training curves: streamed beside the training, resumed, and never in its way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from voxveil.config import parse_params
from voxveil.runtime.atomic import write_json
from voxveil.stages.context import StageContext
from voxveil.tracking import stream
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store
from voxveil.tracking.stream import training_sink

PARAMS = parse_params(
    {
        "systems": {"anon_dp": {"pitch": "dp"}},
        "pitch_variants": {"plain": {}, "dp": {"mechanism": "laplace", "epsilon": 7}, "other": {}},
        "content_variants": {"plain": {}},
    }
)


def context(fingerprint: str = "f1", stage: str = "train_pitch", key: str = "dp") -> StageContext:
    return StageContext(stage, key, PARAMS, {}, {}, Path("unused"), fingerprint)


@pytest.fixture(autouse=True)
def tracked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("DVC_ROOT", str(project))


def runs():
    tracker = connect(resolve_store())
    return tracker.client, tracker.client.search_runs([tracker.experiment_id])


def test_a_curve_arrives_whole_in_a_run_of_its_own(project: Path) -> None:
    with training_sink(context()) as sink:
        for step in range(1, 301):
            sink(step, {"loss": 1 / step, "learning_rate": 0.1, "bad": float("nan")})
    client, (run,) = runs()
    assert run.info.status == "FINISHED"
    assert run.data.tags["voxveil.fingerprint"] == "f1"
    assert (run.data.tags["voxveil.stage"], run.data.tags["voxveil.key"]) == ("train_pitch", "dp")
    history = client.get_metric_history(run.info.run_id, "train_pitch/loss")
    assert [(m.step, m.value) for m in history] == [(step, 1 / step) for step in range(1, 301)]
    assert set(run.data.metrics) == {"train_pitch/loss", "train_pitch/learning_rate"}
    assert run.data.params["pitch_variants.dp.epsilon"] == "7"
    assert not any("other" in name or name.startswith("train_content") for name in run.data.params)


def test_a_run_says_which_speech_it_learns_from(tmp_path: Path) -> None:
    version = {"manifest_sha256": "ab" * 32, "dvc_md5": "cd"}
    write_json(tmp_path / "public/corpus.json", {"revision": "e" * 64, "dataset": version})
    inputs = {"pitch": tmp_path / "no corpus", "public": tmp_path / "public"}
    with training_sink(replace(context(), inputs=inputs)) as sink:
        sink(1, {"loss": 1.0})
    _, (run,) = runs()
    assert run.data.tags["voxveil.data_revision"] == "e" * 64
    assert run.data.tags["voxveil.dataset"] == "ab" * 32


def test_a_resumed_stage_continues_its_run(project: Path) -> None:
    with pytest.raises(RuntimeError), training_sink(context()) as sink:
        for step in range(1, 21):
            sink(step, {"loss": float(step)})
        raise RuntimeError("out of memory")
    client, (run,) = runs()
    assert run.info.status == "FAILED"
    with training_sink(context()) as sink:
        for step in range(11, 31):
            sink(step, {"loss": float(step)})
    with training_sink(context("f2")) as sink:
        sink(1, {"loss": 1.0})
    client, found = runs()
    assert len(found) == 2
    (first,) = [r for r in found if r.data.tags["voxveil.fingerprint"] == "f1"]
    assert first.info.status == "FINISHED"
    steps = [m.step for m in client.get_metric_history(first.info.run_id, "train_pitch/loss")]
    assert steps == list(range(1, 31))


def test_a_run_in_the_environment_is_a_parent_and_nothing_else(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = connect(resolve_store())
    parent = tracker.client.create_run(tracker.experiment_id, run_name="theirs").info.run_id
    tracker.client.log_param(parent, "a", "1")
    monkeypatch.setenv("MLFLOW_RUN_ID", parent)
    for key in ("dp", "plain"):
        with training_sink(context(f"f-{key}", key=key)) as sink:
            sink(1, {"loss": 1.0})
    _, found = runs()
    children = [r for r in found if r.info.run_id != parent]
    assert len(children) == 2
    assert {r.data.tags["mlflow.parentRunId"] for r in children} == {parent}
    theirs = tracker.client.get_run(parent)
    assert theirs.info.status == "RUNNING"
    assert theirs.data.params == {"a": "1"}
    assert not theirs.data.metrics
    assert os.environ["MLFLOW_RUN_ID"] == parent


def test_a_server_that_is_away_costs_one_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:s3cret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with training_sink(context()) as sink:
        sink(1, {"loss": 1.0})
    said = capfd.readouterr().err.splitlines()
    (line,) = [each for each in said if each.startswith("voxveil:")]
    assert "train_pitch[dp]: curves are only in curve.csv" in line
    assert "s3cret" not in "".join(said)


def test_a_server_that_hangs_does_not_hold_the_stage(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(stream, "_PATIENCE", 0.05)
        with training_sink(context()) as sink:
            for step in range(20_000):
                sink(step, {"loss": 1.0})
    assert "did not take the curve" in capfd.readouterr().err


def test_a_stage_that_is_killed_leaves_a_run_that_says_so(project: Path) -> None:
    code = textwrap.dedent("""
        import os, signal, sys
        sys.path.insert(0, sys.argv[1])
        from test_stream import context
        from voxveil.tracking.stream import training_sink
        with training_sink(context()) as sink:
            sink(1, {"loss": 1.0})
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    here = str(Path(__file__).parent)
    # The sender holds standard error open until it has closed the run.
    killed = subprocess.run([sys.executable, "-c", code, here], stderr=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    client, (run,) = runs()
    assert run.info.status == "KILLED"
    assert [m.step for m in client.get_metric_history(run.info.run_id, "train_pitch/loss")] == [1]


def test_without_mlflow_one_line_says_so(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none/mlflow.py").write_text("raise ImportError('no mlflow here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "none"), prepend=os.pathsep)
    with training_sink(context()) as sink:
        sink(1, {"loss": 1.0})
    said = capfd.readouterr().err.splitlines()
    assert said == [
        "voxveil: warning: train_pitch[dp]: curves are only in curve.csv: mlflow is not installed;"
        " it comes with: pip install 'voxveil[mlflow]'"
    ]


def test_switched_off_nothing_is_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "mlflow.db").unlink()
    monkeypatch.setenv("VOXVEIL_TRACKING", "off")
    with training_sink(context()) as sink:
        sink(1, {"loss": 1.0})
    assert not list(project.iterdir())


def test_eight_processes_meet_a_fresh_database_at_once(project: Path) -> None:
    (project / "mlflow.db").unlink()
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from test_stream import context
        from voxveil.tracking.stream import training_sink
        with training_sink(context(sys.argv[2])) as sink:
            for step in range(1, 21):
                sink(step, {"loss": float(step)})
    """)
    here = str(Path(__file__).parent)
    started = [
        subprocess.Popen([sys.executable, "-c", code, here, f"p{k}"], stderr=subprocess.PIPE, text=True)
        for k in range(8)
    ]
    ends = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0] * 8
    assert not any("voxveil: warning" in text for text in ends), ends
    client, found = runs()
    assert sorted(r.data.tags["voxveil.fingerprint"] for r in found) == [f"p{k}" for k in range(8)]
    for run in found:
        assert run.info.status == "FINISHED"
        assert len(client.get_metric_history(run.info.run_id, "train_pitch/loss")) == 20
