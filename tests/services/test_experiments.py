"""DVC experiments beside the checkout, in a copy and out of the queue: one MLflow parent run each."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from made_datasets import commit, shell
from made_outputs import SYSTEMS
from voxveil.cli.main import main
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services

DVC = [sys.executable, "-m", "dvc"]
STAGES = """stages:
  report:
    cmd: >-
      mkdir -p outputs && cp -r {source}/evaluate {source}/samples outputs/ &&
      {python} -m voxveil.cli.main stage report --params run.yaml --in metrics=outputs/evaluate
      --in samples=outputs/samples --out report=outputs/report
    params: [epsilon]
    outs: [outputs/evaluate, outputs/samples, outputs/report]
"""


@pytest.fixture
def checkout(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose pipeline has a report of its own for each epsilon."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "DVC_")) or name == "KFP_RUN_ID":
            monkeypatch.delenv(name)
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[user]\n  name = tester\n  email = tester@localhost\n")
    folder = tmp_path / "checkout"
    folder.mkdir()
    shell(folder, "git", "init", "-q", "-b", "main")
    shell(folder, "dvc", "init", "-q")
    shutil.copyfile(finished / "params.yaml", folder / "run.yaml")
    (folder / "dvc.yaml").write_text(
        STAGES.format(source=finished / "outputs", python=shlex.quote(sys.executable))
    )
    (folder / "params.yaml").write_text("epsilon: 1\n")
    (folder / ".gitignore").write_text("/outputs\n/mlflow.db*\n/mlartifacts\n")
    commit(folder, "start")
    monkeypatch.chdir(folder)
    return folder


def parents() -> dict[str, str]:
    """Return the id of each results run by its experiment."""
    tracker = connect(resolve_store())
    found = tracker.find(role="run")
    assert len(tracker.client.search_runs([tracker.experiment_id])) == len(found) * (1 + len(SYSTEMS))
    return {run.data.tags["voxveil.exp"]: run.info.run_id for run in found}


def test_each_experiment_is_one_parent_run(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell(checkout, "dvc", "exp", "run", "-q", "-n", "here", "-S", "epsilon=2")
    shell(checkout, "dvc", "exp", "run", "-q", "--temp", "-n", "aside", "-S", "epsilon=3")
    shell(checkout, "dvc", "exp", "run", "-q", "--queue", "-n", "queued", "-S", "epsilon=4")
    shell(checkout, "dvc", "queue", "start")
    until = time.monotonic() + 120
    while not {"here", "aside", "queued"} <= set(parents()):
        assert time.monotonic() < until, shell(checkout, "dvc", "queue", "status")
        time.sleep(1)
    while "Running" in (status := shell(checkout, "dvc", "queue", "status")):
        assert time.monotonic() < until, status
        time.sleep(1)
    subprocess.run([*DVC, "queue", "stop", "--kill"], capture_output=True, check=False)
    found = parents()
    assert set(found) == {"here", "aside", "queued"}
    # From the experiment to its run, and in the run the experiment's name.
    for name, run_id in found.items():
        capsys.readouterr()
        assert main(["track", "find", name]) == 0
        assert run_id in capsys.readouterr().out.splitlines()[0]
