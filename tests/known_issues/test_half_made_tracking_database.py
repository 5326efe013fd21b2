"""A stage that trained nothing killed whoever was making MLflow a database: no run was tracked again."""

from __future__ import annotations

import queue
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mlflow")

from voxveil.tracking import sender
from voxveil.tracking.client import TrackingError, connect
from voxveil.tracking.store import resolve_store

TRAINING = {"label": "train_pitch[plain]", "stage": "train_pitch", "key": "plain", "fingerprint": "f"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return tmp_path


def test_whoever_trains_nothing_makes_no_contact(root: Path) -> None:
    lines: queue.SimpleQueue = queue.SimpleQueue()
    lines.put({"status": "FINISHED"})
    sender.send(TRAINING, lines)
    assert list(root.iterdir()) == []


def test_a_database_whose_making_is_killed_is_made_anew(root: Path) -> None:
    code = (
        "import os\nfrom voxveil.tracking import client\nfrom voxveil.tracking.store import resolve_store\n"
        "client.Path.replace = lambda *paths: os._exit(9)\n"
        "client.connect(resolve_store())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert (root / "mlflow.db.partial").is_file()
    assert not (root / "mlflow.db").exists()
    tracker = connect(resolve_store())
    run = tracker.client.create_run(tracker.experiment_id)
    assert [each.info.run_id for each in connect(resolve_store()).find()] == [run.info.run_id]
    assert not (root / "mlflow.db.partial").exists()


def test_one_that_is_half_made_is_named_in_one_line(root: Path) -> None:
    with sqlite3.connect(root / "mlflow.db") as database:
        database.execute("CREATE TABLE assessments (assessment_id VARCHAR(50) NOT NULL)")
    with pytest.raises(
        TrackingError, match=r"half made or half upgraded; remove \S+/mlflow\.db if it holds"
    ) as caught:
        connect(resolve_store())
    assert "\n" not in str(caught.value)
