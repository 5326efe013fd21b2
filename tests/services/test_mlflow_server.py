"""Tracking over HTTP: a real MLflow server with its own artifact store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli import main
from voxveil.config import parse_params
from voxveil.stages.io import StageContext
from voxveil.stages.run import run_stage
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store
from voxveil.tracking.stream import training_sink

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running server."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/server.db"]
    command += ["--serve-artifacts", "--artifacts-destination", str(folder / "store")]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    log = (folder / "log").open("w")
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, folder / "log")
        yield address
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def _wait(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def tracked(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything goes to the server."""
    for name in ("MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID", "DVC_EXP_NAME", "KFP_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)


@pytest.mark.usefixtures("tracked")
def test_a_curve_arrives_over_http() -> None:
    params = parse_params({"train_pitch": {"variants": {"dp": {"mechanism": "laplace", "epsilon": 7}}}})
    context = StageContext("train_pitch", "dp", params, {}, {}, Path("unused"), "over-http")
    with training_sink(context) as sink:
        for step in range(1, 1001):
            sink(step, {"loss": 1 / step})
    tracker = connect(resolve_store())
    (run,) = tracker.find(fingerprint="over-http")
    assert run.info.status == "FINISHED"
    history = tracker.client.get_metric_history(run.info.run_id, "train_pitch/loss")
    assert [m.step for m in history] == list(range(1, 1001))


@pytest.mark.usefixtures("tracked")
def test_a_report_is_published_with_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_outputs(tmp_path)
    for name in SYSTEMS:
        evaluate(tmp_path, name)
    out = tmp_path / "outputs"
    run_stage(
        "report",
        tmp_path / "params.yaml",
        {"metrics": out / "evaluate", "samples": out / "samples"},
        {"report": out / "report"},
    )
    assert "warning" not in capsys.readouterr().err
    assert main(["track", "sync", "--root", str(tmp_path)]) == 0
    tracker = connect(resolve_store())
    found = tracker.client.search_runs([tracker.experiment_id])
    runs = [run for run in found if "voxveil.run_key" in run.data.tags]
    assert len(runs) == 1 + len(SYSTEMS)
    (parent,) = [run for run in runs if run.data.tags["voxveil.role"] == "run"]
    assert parent.info.artifact_uri.startswith("mlflow-artifacts:")
    got = tracker.client.download_artifacts(parent.info.run_id, "report/index.html", str(tmp_path))
    assert Path(got).read_bytes() == (out / "report/index.html").read_bytes()
    for run in runs:
        for name in run.data.metrics:
            assert len(tracker.client.get_metric_history(run.info.run_id, name)) == 1
