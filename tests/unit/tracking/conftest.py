"""A store per test, its database made once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture
def project(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty mlflow.db, and no setting of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_TRACKING", "MLFLOW_EXPERIMENT", "MLFLOW_RUN", "DVC_", "KFP_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder
