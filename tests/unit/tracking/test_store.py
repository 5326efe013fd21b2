"""Where runs go, decided without importing MLflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from voxveil.tracking.store import EXPERIMENT, project_root, resolve_store, tracking_enabled


def test_default_is_sqlite_in_the_dvc_root(tmp_path: Path) -> None:
    store = resolve_store({"DVC_ROOT": str(tmp_path)}, cwd=Path("/"))
    assert store.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert store.artifacts == tmp_path / "mlartifacts"
    assert store.experiment == EXPERIMENT
    assert store.lock == tmp_path / "mlflow.db.lock"


def test_without_dvc_root_the_nearest_dvc_yaml_decides(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").touch()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root({}, deep) == tmp_path
    (tmp_path / "a" / "dvc.yaml").touch()
    assert project_root({}, deep) == tmp_path / "a"


def test_without_a_project_the_current_folder(tmp_path: Path) -> None:
    assert project_root({}, tmp_path) == tmp_path


def test_the_users_settings_win() -> None:
    environ = {
        "MLFLOW_TRACKING_URI": "https://mlflow.example.org",
        "MLFLOW_EXPERIMENT_NAME": "team",
        "DVC_ROOT": "/somewhere",
    }
    store = resolve_store(environ)
    assert (store.uri, store.experiment, store.artifacts, store.lock) == (
        "https://mlflow.example.org",
        "team",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("uri", "lock"),
    [
        ("sqlite:////data/runs.db", Path("/data/runs.db.lock")),
        ("sqlite:////data/runs.db?timeout=9", Path("/data/runs.db.lock")),
        ("sqlite:///:memory:", None),
        ("postgresql+psycopg2://u@h/db", None),
    ],
)
def test_only_sqlite_files_are_locked_and_keep_artifacts_beside_them(uri: str, lock: Path | None) -> None:
    store = resolve_store({"MLFLOW_TRACKING_URI": uri})
    assert store.lock == lock
    assert store.artifacts == (lock.parent / "mlartifacts" if lock else None)


def test_messages_never_hold_credentials() -> None:
    store = resolve_store({"MLFLOW_TRACKING_URI": "https://ann:s3cret@mlflow.example.org:1/x"})
    assert store.shown == "https://mlflow.example.org:1/x"
    said = store.redact(f"cannot reach {store.uri}\nAuthorization ann:s3cret refused" + "x" * 500)
    assert "s3cret" not in said
    assert "\n" not in said
    assert len(said) <= 200


@pytest.mark.parametrize(
    ("value", "enabled"),
    [("off", False), ("OFF", False), ("0", False), ("false", False), ("on", True), ("1", True)],
)
def test_switch(value: str, enabled: bool) -> None:
    assert tracking_enabled({"VOXVEIL_TRACKING": value}) is enabled
    assert tracking_enabled({}) is True


def test_stream_and_store_load_no_mlflow() -> None:
    code = (
        "import sys, voxveil.tracking.stream, voxveil.tracking.publish.send, voxveil.stages.report\n"
        "print([name for name in ('mlflow', 'matplotlib', 'torch') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
