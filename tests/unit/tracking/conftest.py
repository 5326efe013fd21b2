"""A store per test, its database made once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with tables and no experiment of ours."""
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def project(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty mlflow.db, and no setting of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_TRACKING", "MLFLOW_EXPERIMENT", "MLFLOW_RUN", "DVC_", "KFP_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(empty_database, folder / "mlflow.db")
    return folder
