"""Withdrawal of consent: find a speaker, remove their data, report what cannot be removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from voxveil.datasets.adding import Reports
from voxveil.datasets.everywhere import Everywhere
from voxveil.datasets.face import Face
from voxveil.datasets.forgetting import forget_speaker
from voxveil.datasets.git import git, refs
from voxveil.datasets.holdings import Holding, holding_refs
from voxveil.datasets.mlflow_runs import FoundModel, Tracked, delete_found
from voxveil.runtime.dvc_program import dvc
from voxveil.runtime.errors import DataError, InputError, one_line
from voxveil.runtime.s3 import S3Uri, s3_client, s3_faults, s3_keys
from voxveil.runtime.terminal import align_columns

__all__ = ["clean_up", "print_everywhere", "withdraw"]

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
    with s3_faults(model.address, "deleted", DataError):
        client = s3_client()
        keys = list(s3_keys(client, address))
        for key in keys:
            client.delete_object(Bucket=address.bucket, Key=key)
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
        f"voxveil stack gc --older-than 0d --run-ids {ids}   # on the server" if store.file is None else last,
    ]


def collect_tracked(root: Path, tracked: Tracked) -> str:
    """Delete model versions and runs, permanently in a local database; return a report.

    Raises:
        DataError: ``mlflow gc`` fails.
        TrackingError: MLflow is away or refuses.
    """
    delete_found(tracked)
    store, runs = tracked.store, tracked.runs
    if not runs:
        return "done"
    ids = ",".join(run.id for run in runs)
    if store.file is None:
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


def print_everywhere(found: Everywhere) -> None:
    """Print everything found of the speaker, and what was not searched."""
    print(f"speaker {found.speaker}")
    print(f"\ndataset versions: {len(found.holdings) or 'none'}")
    if found.holdings:
        rows = [
            (
                holding.dataset,
                holding.commit[:12],
                holding.date,
                str(len(holding.rows)),
                f"{sum(row.milliseconds for row in holding.rows) / 1000:.1f}",
            )
            for holding in found.holdings
        ]
        header = ("dataset", "revision", "date", "utterances", "seconds")
        print("\n".join(align_columns([header, *rows])))
    print(f"now in: {', '.join(f'data/{dataset.name}' for dataset in found.current) or 'no dataset'}")
    print(f"\noutputs: {len(found.outputs) or 'none'}")
    for output in found.outputs:
        print(f"  {_short(output.folder)} ({output.stage}): {_some(output.files)}")
    if found.outputs:
        print("  what was trained or measured on these holds them too: new version, then 'dvc repro'")
    print(f"\nreleases in the register: {len(found.releases) or 'none'}")
    for release, entries in found.releases:
        print(f"  {release.time} {release.id} {release.purpose} {release.system}: {entries} entries")
    if found.releases:
        print(
            "  entries are never removed, they say what was spent; whoever has the released speech keeps it"
        )
    _print_tracked(found)
    for gap in found.gaps:
        print(f"\nnot searched: {gap}")
    if found.holdings or found.current:
        print(f"\n{_remains(found)}")


def _print_tracked(found: Everywhere) -> None:
    where = ", ".join(tracked.store.shown for tracked in found.tracked) or "no MLflow store here"
    print(f"\nMLflow runs of their data ({where}): {len(found.runs) or 'none'}")
    for run in found.runs:
        print(f"  {run.id} {run.experiment}: {run.name}{' (marked as deleted)' if run.deleted else ''}")
    print(f"registered models made of it: {len(found.models) or 'none'}")
    for model in found.models:
        alias = f", alias {', '.join(model.aliases)}" if model.aliases else ""
        print(f"  {model.name} version {model.version}{alias}: {model.address or 'no address'}")


def withdraw(root: Path, found: Everywhere, reports: Reports) -> Iterator[tuple[str, Face]]:
    """Write the next version of every current dataset without the speaker, and yield each.

    Raises:
        InputError: No dataset of the work tree holds them.
    """
    if not found.current:
        raise InputError(f"speaker {found.speaker}: in no dataset of the work tree; nothing was changed")
    for dataset in found.current:
        yield dataset.name, forget_speaker(dataset, found.speaker, reports)


def clean_up(root: Path, found: Everywhere) -> int:
    """Delete permanently the data that no current version needs, models and MLflow runs; print a report.

    Raises:
        InputError: Something stands in the way; nothing was deleted.
        DataError: DVC or S3 refuses.
        TrackingError: MLflow is away or refuses.
    """
    obstacles = in_the_way(root, found.holdings, [dataset.name for dataset in found.current])
    obstacles += [line for model in found.models for line in in_use(model)]
    obstacles += [f"not searched: {gap}" for gap in found.gaps]
    if obstacles:
        for line in obstacles[:-1]:
            print(line)
        raise InputError(f"{obstacles[-1]}; nothing was deleted ({len(obstacles)} in the way)")
    # DVC last: its cache is what finds runs of corpora that are gone from the work tree.
    for model in found.models:
        print(f"{model.name} version {model.version}: {delete_bytes(model)}")
    for tracked in found.tracked:
        if tracked.runs or tracked.models:
            print(f"MLflow at {tracked.store.shown}: {collect_tracked(root, tracked)}")
    print(f"dvc {' '.join(DVC_GC)}: {collect_data(root)}")
    for output in found.outputs:
        print(
            f"still there: {_short(output.folder)}; 'dvc repro' (or delete it), 'dvc push', then --gc again"
        )
    print(_kept(found))
    return 1 if found.outputs else 0


def _remains(found: Everywhere) -> str:
    speaker = found.speaker
    lines = [
        "to take them out:",
        f"  voxveil data forget {speaker} --yes     # on every branch that is still used",
        "  git commit, dvc repro, dvc push, git push",
        f"  voxveil data forget {speaker} --gc      # checks that no branch or tag holds them, then runs:",
        f"    dvc {' '.join(DVC_GC)}",
        *(f"    {line}" for tracked in found.tracked for line in tracked_commands(tracked)),
        "  dvc gc deletes every version that is at the tip of no branch or tag, of every dataset and output,",
        "  and the data of experiments that are no branch.",
        _kept(found),
    ]
    return "\n".join(lines)


def _kept(found: Everywhere) -> str:
    lines = [
        "what stays:",
        f"  Git: {len(found.holdings)} revisions name them in manifests (ids, sex, seconds, SHA-256; no"
        " audio); only rewriting the history of every clone removes that (git filter-repo)",
        "  every other clone and its DVC cache, until 'git pull', 'dvc pull' and 'dvc gc' there",
        "  the bucket: deleted objects until its lifecycle rule drops them (data init: 90 days unless told)",
        "  copies of models and releases that have left: train again, tell who has them",
        "  backups and whatever was copied out of here: nothing here reaches those",
    ]
    for name in found.imported:
        lines.append(f"  the archive that data/{name}.tar.gz.dvc names still holds them at its address")
    return "\n".join(lines)


def _short(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def _some(files: Sequence[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
