"""Servers that go away in the middle, and many writers at once: nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from made_gateway import Gateway
from voxveil.cli.main import main
from voxveil.config import parse_params
from voxveil.runtime.atomic import read_json
from voxveil.stages.context import StageContext
from voxveil.stages.run import run_stage
from voxveil.tracking.client import connect
from voxveil.tracking.publish import send as module
from voxveil.tracking.store import resolve_store
from voxveil.tracking.stream import training_sink

pytestmark = pytest.mark.services


@pytest.fixture
def gateway(team, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """Runs go through a door; a shut door is noticed at once."""
    door = Gateway(team.settings.port)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", door.address)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    yield door
    door.shut()


def context(fingerprint: str) -> StageContext:
    params = parse_params({"pitch_variants": {"dp": {"mechanism": "laplace", "epsilon": 7}}})
    return StageContext("train_pitch", "dp", params, {}, {}, Path("unused"), fingerprint)


def arrived(fingerprint: str) -> list[int]:
    tracker = connect(resolve_store())
    return [
        metric.step
        for run in tracker.find(fingerprint=fingerprint)
        for metric in tracker.client.get_metric_history(run.info.run_id, "train_pitch/loss")
    ]


def test_eight_writers_at_once_lose_nothing(team, sweep: dict[str, Path], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom voxveil.tracking.publish.send import publish\n"
        "out = sys.argv[1] + '/outputs'\n"
        "publish(f'{out}/evaluate', f'{out}/report', experiment=sys.argv[2])\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(sweep["eps-10"]), f"parallel-{n}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    ends = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 8, [end[1][-500:] for end in ends]
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 24
    assert {run.info.status for run in runs} == {"FINISHED"}
    parents = tracker.find(role="run")
    assert {run.data.tags["voxveil.run_key"] for run in parents} == {f"parallel-{n}" for n in range(8)}
    flat = read_json(sweep["eps-10"] / "outputs/evaluate/anon_dp/anon_dp.metrics.json")
    measured = tracker.find(system="anon_dp")
    assert len(measured) == 8
    for run in measured:
        assert run.data.metrics == pytest.approx(flat)
    page = (sweep["eps-10"] / "outputs/report/index.html").read_bytes()
    for run in parents:
        got = tracker.client.download_artifacts(run.info.run_id, "report/index.html", str(tmp_path))
        assert Path(got).read_bytes() == page


def test_a_server_away_during_a_report_is_caught_up_by_sync(
    gateway: Gateway, finished: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    root = tmp_path / "run"
    shutil.copytree(finished, root)
    out = root / "outputs"
    real, filled = module._fill, []

    def cut(tracker, plan, run_id):
        filled.append(plan.name)
        if len(filled) == 2:
            gateway.shut()
        real(tracker, plan, run_id)

    monkeypatch.setattr(module, "_fill", cut)
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", root / "params.yaml", inputs, {"report": out / "report"})
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("voxveil:")]
    assert "'voxveil track sync' publishes them later" in line
    assert (out / "report/_DONE.json").is_file()
    assert main(["track", "sync", "--root", str(root)]) == 1
    monkeypatch.setattr(module, "_fill", real)
    gateway.reopen()
    assert main(["track", "sync", "--root", str(root)]) == 0
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 4
    assert {run.info.status for run in runs} == {"FINISHED"}
    (parent,) = tracker.find(role="run")
    got = tracker.client.download_artifacts(parent.info.run_id, "report/index.html", str(tmp_path))
    assert Path(got).read_bytes() == (out / "report/index.html").read_bytes()


def test_a_training_outlives_its_server(gateway: Gateway, capfd) -> None:
    with training_sink(context("outlives")) as sink:
        for step in range(1, 21):
            sink(step, {"loss": 1 / step})
        until = time.monotonic() + 60
        while len(arrived("outlives")) < 20:
            assert time.monotonic() < until
            time.sleep(0.2)
        gateway.shut()
        for step in range(21, 41):
            sink(step, {"loss": 1 / step})
    (line,) = [each for each in capfd.readouterr().err.splitlines() if each.startswith("voxveil:")]
    assert "train_pitch[dp]: curves are only in curve.csv" in line
    gateway.reopen()
    assert arrived("outlives") == list(range(1, 21))
    # The stage runs again (it was killed, say): its curve goes on where MLflow's ends.
    with training_sink(context("outlives")) as sink:
        for step in range(15, 41):
            sink(step, {"loss": 1 / step})
    assert arrived("outlives") == list(range(1, 41))


def test_postgresql_restarted_in_the_middle(team, postgres, finished: Path, monkeypatch) -> None:
    real, filled = module._fill, []

    def restart(tracker, plan, run_id):
        filled.append(plan.name)
        if len(filled) == 2:
            assert postgres.stop()
            # Back before the client gives up, as after an upgrade of the system.
            threading.Timer(1, postgres.start).start()
        real(tracker, plan, run_id)

    monkeypatch.setattr(module, "_fill", restart)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    first = main(["track", "sync", "--root", str(finished)])
    monkeypatch.setattr(module, "_fill", real)
    until = time.monotonic() + 60
    while not postgres.running():
        assert time.monotonic() < until
        time.sleep(0.2)
    assert main(["track", "sync", "--root", str(finished)]) == 0
    assert first in (0, 1)
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 4
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert all(run.data.metrics for run in runs)
    for run in runs:
        for name in run.data.metrics:
            assert len(tracker.client.get_metric_history(run.info.run_id, name)) == 1
