"""Finished results sent to a real MLflow server over PostgreSQL and S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli import main
from voxveil.stages.run import run_stage

pytestmark = pytest.mark.services


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_outputs(tmp_path, SYSTEMS)
    for name in SYSTEMS:
        evaluate(tmp_path, name)
    out = tmp_path / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", tmp_path / "params.yaml", inputs, {"report": out / "report"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    return tmp_path


def test_sync_sends_a_run_once(finished: Path, mlflow_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "services")
    monkeypatch.delenv("VOXVEIL_TRACKING", raising=False)
    for _ in range(2):
        assert main(["track", "sync"]) == 0
    client = MlflowClient(mlflow_server)
    experiment = client.get_experiment_by_name("services")
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert len(parents) == 1
    assert len(children) == len(SYSTEMS)
    anonymous = next(run for run in children if "privacy/epsilon_pitch" in run.data.metrics)
    assert anonymous.data.metrics["privacy/epsilon_pitch"] == SYSTEMS["anon_dp"].pitch
    assert any("report" in file.path for file in client.list_artifacts(parents[0].info.run_id))


def test_a_server_that_is_away_is_one_line(finished: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.delenv("VOXVEIL_TRACKING", raising=False)
    assert main(["track", "sync"]) != 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("voxveil")]
    assert len(lines) == 1
    assert "127.0.0.1:9" in lines[0]
