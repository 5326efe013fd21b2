"""Versions of datasets, read from Git history without fetching data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from voxveil.datasets.dataset import FOLDER, check_name
from voxveil.datasets.face import Face, Row, parse_face, parse_manifest
from voxveil.datasets.git import file_at, files_at, git, resolve
from voxveil.runtime.errors import DataError, InputError

__all__ = ["Version", "all_versions", "rows_at", "uncommitted", "versions_at"]

_SUMMARY, _MANIFEST = ".json", ".manifest.tsv"


@dataclass(frozen=True)
class Version:
    """A version of a dataset at one commit.

    Attributes:
        name: Name of the dataset.
        commit: Full commit id.
        date: Of the commit, ``YYYY-MM-DD``.
        face: Its summary; None where the commit holds none that can be used.
        fault: Why not, or what contradicts it; empty if sound.
    """

    name: str
    commit: str
    date: str
    face: Face | None
    fault: str = ""


def names_at(root: Path, revision: str) -> list[str]:
    """Return the datasets of a commit, sorted."""
    files = set(files_at(root, revision, FOLDER))
    return sorted(
        name.removesuffix(_MANIFEST)
        for name in files
        if name.endswith(_MANIFEST) and f"{name.removesuffix(_MANIFEST)}{_SUMMARY}" in files
    )


def versions_at(root: Path, revision: str) -> list[Version]:
    """Return each dataset at a revision, with the commit that last changed it."""
    commit = resolve(root, revision)
    found = []
    for name in names_at(root, commit):
        line = git(root, "log", "-1", "--format=%H %cs", commit, "--", *_paths(name)).strip()
        last, _, date = line.partition(" ")
        found.append(_version(root, name, last or commit, date))
    return found


def all_versions(root: Path, names: Sequence[str] = (), *, everywhere: bool = False) -> list[Version]:
    """Return every version of datasets in history, by name, newest first.

    Args:
        root: Folder that holds ``.dvc``.
        names: Of these datasets; all if empty.
        everywhere: Of every branch, tag and remote branch, not only of what is checked out.
    """
    resolve(root, "HEAD")
    start = ["--all", "HEAD"] if everywhere else ["HEAD"]
    wanted = [check_name(name) for name in names] or _names_ever(root, start)
    return [version for name in wanted for version in _history(root, name, start)]


def uncommitted(root: Path) -> list[str]:
    """Return the datasets whose summary in the work tree is in no commit, sorted."""
    listed = git(
        root, "status", "--porcelain", "--untracked-files=all", "--", f":(glob){FOLDER}/*{_MANIFEST}"
    )
    return sorted({Path(line[3:]).name.removesuffix(_MANIFEST) for line in listed.split("\n") if line})


def rows_at(root: Path, name: str, revision: str) -> tuple[Row, ...]:
    """Return the manifest of a dataset at a revision, checked against its summary.

    Raises:
        DataError: There is no such revision.
        InputError: It holds no such dataset, or manifest and summary contradict each other.
    """
    commit = resolve(root, revision)
    known = names_at(root, commit)
    if name not in known:
        raise InputError(f"{revision}: holds no dataset {name!r}; it has: {', '.join(known) or 'none'}")
    version = _version(root, name, commit, "")
    if version.fault:
        raise InputError(f"{revision}: {version.fault}")
    return parse_manifest(_manifest(root, name, commit), f"{revision}:{FOLDER}/{name}{_MANIFEST}")


def _names_ever(root: Path, start: Sequence[str]) -> list[str]:
    manifests = f":(glob){FOLDER}/*{_MANIFEST}"
    listed = git(root, "log", *start, "--full-history", "--format=", "--name-only", "--", manifests)
    return sorted({Path(line).name.removesuffix(_MANIFEST) for line in listed.split("\n") if line})


def _history(root: Path, name: str, start: Sequence[str]) -> Iterator[Version]:
    listed = git(root, "log", *start, "--full-history", "--format=%H %cs", "--", *_paths(name))
    for line in listed.split("\n"):
        commit, _, date = line.partition(" ")
        # A commit that removed the dataset is in the list and is no version.
        if commit and name in names_at(root, commit):
            yield _version(root, name, commit, date)


def _paths(name: str) -> tuple[str, ...]:
    return f"{FOLDER}/{name}{_SUMMARY}", f"{FOLDER}/{name}{_MANIFEST}", f"{FOLDER}/{name}.dvc"


def _version(root: Path, name: str, commit: str, date: str) -> Version:
    where = f"{FOLDER}/{name}{_SUMMARY}"
    try:
        face = parse_face(file_at(root, commit, where), where)
        manifest = _manifest(root, name, commit)
    except InputError as error:
        return Version(name, commit, date, None, str(error))
    if hashlib.sha256(manifest.encode()).hexdigest() != face.manifest_sha256:
        return Version(name, commit, date, face, f"{where} and the manifest are of different versions")
    if _md5_at(root, name, commit) != face.dvc_md5:
        return Version(name, commit, date, face, f"{where} and {name}.dvc are of different versions")
    return Version(name, commit, date, face)


def _manifest(root: Path, name: str, commit: str) -> str:
    return file_at(root, commit, f"{FOLDER}/{name}{_MANIFEST}")


def _md5_at(root: Path, name: str, commit: str) -> str:
    try:
        return str(yaml.safe_load(file_at(root, commit, f"{FOLDER}/{name}.dvc"))["outs"][0]["md5"])
    except (DataError, yaml.YAMLError, KeyError, IndexError, TypeError):
        return ""
