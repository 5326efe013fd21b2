"""Permanent removal of data that no current version needs, with the obstacles to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from voxveil.datasets.git import git, refs
from voxveil.datasets.holdings import Holding, holding_refs
from voxveil.datasets.mlflow_runs import FoundModel, Tracked, delete_found
from voxveil.runtime.dvc_program import dvc
from voxveil.runtime.errors import DataError, VoxveilError, one_line
from voxveil.runtime.s3 import S3Uri, s3_client, s3_fault
from voxveil.tracking.store import Store

__all__ = [
    "DVC_GC",
    "collect_data",
    "collect_tracked",
    "delete_bytes",
    "in_the_way",
    "in_use",
    "tracked_commands",
]

#: Keeps the data of the work tree and of the tip of every local branch and tag, here and on the remote.
DVC_GC = ("gc", "--workspace", "--all-branches", "--all-tags", "--cloud", "--force")


def in_the_way(root: Path, holdings: Sequence[Holding], current: Sequence[str]) -> list[str]:
    """Return the reasons why ``dvc gc`` would keep the speaker's audio or delete needed data, one line each.

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
    """Run ``dvc gc`` and return its output.

    Raises:
        DataError: DVC refuses.
    """
    return one_line(dvc(root, *DVC_GC)) or "done"


def in_use(model: FoundModel) -> list[str]:
    """Return why a model version cannot be deleted yet: an alias points to it."""
    return [
        f"model {model.name} version {model.version} is made of data that hold them and is {alias}:"
        f" 'voxveil model register DIR --name {model.name} --alias {alias}' with another, or remove the alias"
        " in MLflow"
        for alias in model.aliases
    ]


def delete_bytes(model: FoundModel) -> str:
    """Delete the files of a model from S3 and return a report; DVC removes those that it tracks.

    Raises:
        DataError: The store is away or refuses.
    """
    if not model.address.startswith("s3://"):
        return "version deleted"
    address = S3Uri.parse(model.address)
    try:
        client = s3_client()
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket=address.bucket, Prefix=address.key("")
        )
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        for key in keys:
            client.delete_object(Bucket=address.bucket, Key=key)
    except VoxveilError:
        raise
    except Exception as error:  # botocore's faults have no common base
        raise DataError(s3_fault(model.address, "deleted", error)) from None
    return f"{len(keys)} objects of {model.address} deleted, version deleted"


def tracked_commands(tracked: Tracked) -> list[str]:
    """Return the commands that remove a store's runs permanently."""
    if not tracked.runs:
        return []
    ids = ",".join(run.id for run in tracked.runs)
    store, live = tracked.store, [run for run in tracked.runs if not run.deleted]
    last = f"mlflow gc --backend-store-uri {store.shown} --tracking-uri {store.shown} --run-ids {ids}"
    return [
        *(f"MLFLOW_TRACKING_URI={store.shown} mlflow runs delete --run-id {run.id}" for run in live),
        f"voxveil stack gc --older-than 0d --run-ids {ids}   # on the server" if _server(store) else last,
    ]


def collect_tracked(root: Path, tracked: Tracked) -> str:
    """Delete model versions and runs, permanently in a local database; return a report.

    Raises:
        DataError: MLflow refuses.
    """
    delete_found(tracked)
    store, runs = tracked.store, tracked.runs
    if not runs:
        return "done"
    ids = ",".join(run.id for run in runs)
    if _server(store):
        return (
            f"{len(runs)} runs are marked as deleted; on the server 'voxveil stack gc --older-than 0d"
            f" --run-ids {ids}' removes them for good"
        )
    command = [sys.executable, "-m", "mlflow", "gc", "--backend-store-uri", store.uri]
    result = subprocess.run(
        [*command, "--tracking-uri", store.uri, "--run-ids", ids],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise DataError(f"mlflow gc: {store.redact(result.stderr.strip().rpartition(chr(10))[2])}")
    return f"{len(runs)} runs removed for good"


def _server(store: Store) -> bool:
    return store.lock is None
