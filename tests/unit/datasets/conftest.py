"""A project whose remote is a folder, made once and copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from made_datasets import make_project


@pytest.fixture(scope="session")
def empty_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("template") / "project", "../../store")


@pytest.fixture
def project(empty_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: an empty project; its remote is ``store`` beside it."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "DVC_", "AWS_", "VOXVEIL_LEDGER")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    folder = tmp_path / "project"
    shutil.copytree(empty_project, folder, symlinks=True)
    (tmp_path / "store").mkdir()
    monkeypatch.chdir(folder)
    return folder
