"""What was deleted in MLflow goes for good after its time: runs, artifacts, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services


def collect(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voxveil.cli.main", "stack", "gc", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_deleted_runs_and_their_artifacts_are_removed_for_good(team, s3, stack, tmp_path: Path) -> None:
    tracker = connect(resolve_store())
    (tmp_path / "report.html").write_text("report")
    runs = {}
    for name in ("kept", "deleted"):
        run = tracker.client.create_run(tracker.experiment_id, run_name=name)
        tracker.client.log_artifact(run.info.run_id, str(tmp_path / "report.html"))
        runs[name] = run.info.run_id
    tracker.client.delete_run(runs["deleted"])

    def stored(name: str) -> int:
        prefix = f"artifacts/{tracker.experiment_id}/{runs[name]}/"
        return int(s3.client().list_objects_v2(Bucket="mlflow", Prefix=prefix)["KeyCount"])

    data = ("--data", str(stack.folder))
    # It can be restored for a while.
    done = collect(*data)
    assert (done.returncode, done.stdout) == (0, f"MLflow at {team.address}: 0 removed for good\n"), (
        done.stderr
    )
    assert stored("deleted") == 1
    done = collect(*data, "--older-than", "0d", "--run-ids", runs["deleted"])
    assert (done.returncode, done.stdout) == (0, f"MLflow at {team.address}: 1 removed for good\n"), (
        done.stderr
    )
    assert stored("deleted") == 0 and stored("kept") == 1
    left = tracker.client.search_runs([tracker.experiment_id], run_view_type=3)
    assert [run.info.run_id for run in left] == [runs["kept"]]
    # What is not deleted stays, and the reason is one line without a password.
    done = collect(*data, "--older-than", "0d", "--run-ids", runs["kept"])
    assert done.returncode == 1 and stored("kept") == 1
    (line,) = done.stderr.splitlines()
    assert "not in `deleted` lifecycle stage" in line and team.settings.admin_password not in line


@pytest.mark.parametrize("words", [("--older-than", "soon"), ("--run-ids", "x;y")])
def test_a_wrong_word_removes_nothing(stack, mlflow_server, words: tuple[str, str]) -> None:
    done = collect("--data", str(stack.folder), *words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert words[0] in done.stderr
