"""``voxveil track sync --exp``: the results of a DVC experiment, out of the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.stages.run import run_stage
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

pytest.importorskip("dvc", reason="dvc is not installed")

STAGES = """stages:
  make:
    cmd: mkdir -p outputs && cp -r {source}/evaluate {source}/report outputs/
    params: [eps]
    outs: [outputs/evaluate, outputs/report]
"""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with an experiment ``rough-dusk`` whose outputs are in the cache only."""
    made = tmp_path / "made"
    make_outputs(made)
    for name in SYSTEMS:
        evaluate(made, name)
    out = made / "outputs"
    run_stage(
        "report",
        made / "params.yaml",
        {"metrics": out / "evaluate", "samples": out / "samples"},
        {"report": out / "report"},
    )
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    monkeypatch.chdir(project)
    dvc = str(Path(sys.executable).with_name("dvc"))
    git(project, "init", "-q")
    subprocess.run([dvc, "init", "-q"], check=True)
    (project / "dvc.yaml").write_text(STAGES.format(source=out))
    (project / "params.yaml").write_text("eps: 1\n")
    (project / ".gitignore").write_text("/outputs\n/mlflow.db*\n/mlartifacts\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    subprocess.run(
        [dvc, "exp", "run", "-q", "-n", "rough-dusk", "-S", "eps=2"], check=True, capture_output=True
    )
    shutil.rmtree(project / "outputs")
    return project


def test_an_experiment_is_published_from_the_cache(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["track", "sync", "--exp", "rough-dusk"]) == 0
    said = capsys.readouterr().out
    assert f"published to sqlite:///{checkout}/mlflow.db" in said
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 1 + len(SYSTEMS)
    head = git(checkout, "rev-parse", "HEAD")
    for run in runs:
        assert run.data.tags["voxveil.run_key"] == "rough-dusk"
        assert run.data.tags["voxveil.exp"] == "rough-dusk"
        assert run.data.tags["mlflow.source.git.commit"] != head
    assert not (checkout / "outputs").exists()
    assert main(["track", "sync", "--exp", "no-such-exp"]) == 2
    assert (
        f"no-such-exp: neither a DVC experiment nor a Git revision of {checkout}" in capsys.readouterr().err
    )
