"""Make the helper modules of this folder importable by its tests; stores of their own."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from s3_server import Store


@pytest.fixture(scope="session", autouse=True)
def quick_caller_names() -> Iterator[None]:
    """Let kfp name the caller without reading source files.

    Each setter of a task calls ``inspect.stack()``, which searches every loaded module: with torch loaded
    by other tests a compilation takes minutes, in a process of its own seconds.
    """
    try:
        from kfp.dsl import pipeline_task
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_task, "inspect", SimpleNamespace(stack=lambda: inspect.stack(0)))
        yield


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return monkeypatch


@pytest.fixture
def store(clean: pytest.MonkeyPatch) -> Iterator[Store]:
    server = Store()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    clean.setenv("AWS_ACCESS_KEY_ID", "key")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables, to be copied: making them takes seconds."""
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path
