"""Curves and finished results sent to the team's server, over HTTP, with a password."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from made_outputs import SYSTEMS
from voxveil.cli.main import main
from voxveil.config import parse_params
from voxveil.stages.context import StageContext
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store
from voxveil.tracking.stream import training_sink

pytestmark = pytest.mark.services


@pytest.mark.usefixtures("team")
def test_a_curve_arrives_over_http() -> None:
    params = parse_params({"pitch_variants": {"dp": {"mechanism": "laplace", "epsilon": 7}}})
    context = StageContext("train_pitch", "dp", params, {}, {}, Path("unused"), "over-http")
    with training_sink(context) as sink:
        for step in range(1, 1001):
            sink(step, {"loss": 1 / step})
    tracker = connect(resolve_store())
    (run,) = tracker.find(fingerprint="over-http")
    assert run.info.status == "FINISHED"
    history = tracker.client.get_metric_history(run.info.run_id, "train_pitch/loss")
    assert [m.step for m in history] == list(range(1, 1001))


@pytest.mark.usefixtures("team")
def test_results_are_sent_once_and_whole(finished: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["track", "sync", "--root", str(finished)]) == 0
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert (len(parents), len(children)) == (1, len(SYSTEMS))
    (parent,) = parents
    assert parent.info.artifact_uri.startswith("mlflow-artifacts:")
    got = tracker.client.download_artifacts(parent.info.run_id, "report/index.html", str(tmp_path))
    assert Path(got).read_bytes() == (finished / "outputs/report/index.html").read_bytes()
    anonymous = next(run for run in children if "privacy/epsilon_pitch" in run.data.metrics)
    assert anonymous.data.metrics["privacy/epsilon_pitch"] == SYSTEMS["anon_dp"].pitch
    unbounded = next(run for run in children if run.data.tags["voxveil.system"] == "anon")
    assert "privacy/epsilon_pitch" not in unbounded.data.metrics
    assert "voxveil.unbounded.privacy/epsilon_pitch" in unbounded.data.tags
    for run in runs:
        for name in run.data.metrics:
            assert len(tracker.client.get_metric_history(run.info.run_id, name)) == 1


def test_a_server_that_is_away_is_one_line(finished: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["track", "sync", "--root", str(finished)]) != 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("voxveil")]
    assert len(lines) == 1
    assert "127.0.0.1:9" in lines[0]


@pytest.mark.usefixtures("team")
def test_a_wrong_password_is_one_line_and_sends_nothing(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "not-the-password")
    assert main(["track", "sync", "--root", str(finished)]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("voxveil")]
    assert len(lines) == 1
    assert "not-the-password" not in lines[0]


@pytest.mark.usefixtures("team")
def test_compare_reads_what_was_sent(sweep: dict[str, Path], tmp_path: Path, monkeypatch, capsys) -> None:
    for name in ("eps-1", "eps-100"):
        shutil.copytree(sweep[name], tmp_path / name)
        monkeypatch.setenv("DVC_EXP_NAME", name)
        assert main(["track", "sync", "--root", str(tmp_path / name)]) == 0
    monkeypatch.chdir(tmp_path / "eps-1")
    capsys.readouterr()
    assert main(["compare", "eps-1", "eps-100"]) == 0
    said = capsys.readouterr().out
    assert "/#/compare-runs?runs=" in said
    assert "higher, worse (unpaired)" in said
    assert main(["track", "find", "eps-100"]) == 0
    assert "/#/experiments/" in capsys.readouterr().out
