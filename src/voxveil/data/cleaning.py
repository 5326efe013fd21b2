"""Remove for good what no current version needs: the exact commands, and what stands in their way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from voxveil.data.dvc_program import dvc
from voxveil.data.errors import DataError, one_line
from voxveil.data.git import git, refs
from voxveil.data.holdings import Holding, holding_refs
from voxveil.data.mlflow_runs import FoundRun, delete_runs
from voxveil.tracking.store import Store

__all__ = ["DVC_GC", "collect_data", "collect_runs", "in_the_way", "mlflow_commands"]

#: Keeps the data of the work tree and of the tip of every local branch and tag, here and on the remote.
DVC_GC = ("gc", "--workspace", "--all-branches", "--all-tags", "--cloud", "--force")


def in_the_way(root: Path, holdings: Sequence[Holding], current: Sequence[str]) -> list[str]:
    """Return why ``dvc gc`` would keep the speaker's audio, or delete what others need; one line each.

    Args:
        root: Folder that holds ``.dvc``.
        holdings: Versions that hold the speaker.
        current: Datasets of the work tree that do.
    """
    lines = [f"data/{name} still holds the speaker: voxveil data forget SPEAKER --yes" for name in current]
    for ref in holding_refs(root, holdings):
        if ref.startswith("refs/tags/"):
            tag = ref.removeprefix("refs/tags/")
            lines.append(f"tag {tag} holds the speaker: git tag -d {tag} && git push --delete origin {tag}")
        elif ref.startswith("refs/heads/"):
            branch = ref.removeprefix("refs/heads/")
            lines.append(
                f"branch {branch} holds the speaker: forget and commit there, or git branch -D {branch}"
            )
        else:
            lines.append(f"{ref.removeprefix('refs/remotes/')} holds the speaker: git push the new version")
    return lines + _unknown_here(root)


def _unknown_here(root: Path) -> list[str]:
    """Return a line for each remote branch whose data no local branch would keep."""
    everything = refs(root)
    local = [name for name in everything if name.startswith("refs/heads/")]
    lines = []
    for name, commit in everything.items():
        if not name.startswith("refs/remotes/"):
            continue
        containing = git(root, "for-each-ref", "--format=%(refname)", f"--contains={commit}", "refs/heads")
        if not set(containing.split()) & set(local):
            short = name.removeprefix("refs/remotes/")
            branch = short.partition("/")[2]
            lines.append(
                f"{short} is in no local branch, so its data would be deleted: git branch {branch} {short},"
                " or pull"
            )
    return lines


def collect_data(root: Path) -> str:
    """Run ``dvc gc`` and return what it says.

    Raises:
        DataError: DVC refuses.
    """
    return one_line(dvc(root, *DVC_GC)) or "done"


def mlflow_commands(store: Store, runs: Sequence[FoundRun]) -> list[str]:
    """Return the commands that remove runs for good."""
    ids = ",".join(run.id for run in runs)
    server = store.lock is None
    database = "DATABASE_OF_THE_SERVER --artifacts-destination ITS_ARTIFACTS" if server else store.shown
    return [
        *(f"MLFLOW_TRACKING_URI={store.shown} mlflow runs delete --run-id {run.id}" for run in runs),
        f"mlflow gc --backend-store-uri {database} --run-ids {ids}{'   # on the server' if server else ''}",
    ]


def collect_runs(root: Path, store: Store, runs: Sequence[FoundRun]) -> str:
    """Delete runs, and for a database of this machine remove them for good; return what was done.

    Raises:
        DataError: MLflow refuses.
    """
    delete_runs(store, runs)
    if store.lock is None:
        return f"{len(runs)} runs are marked as deleted; 'mlflow gc' on the server removes them for good"
    command = [sys.executable, "-m", "mlflow", "gc", "--backend-store-uri", store.uri]
    result = subprocess.run(
        [*command, "--run-ids", ",".join(run.id for run in runs)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise DataError(f"mlflow gc: {store.redact(result.stderr.strip().rpartition(chr(10))[2])}")
    return f"{len(runs)} runs removed for good"
