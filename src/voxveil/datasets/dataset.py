"""Paths of a dataset in a project, and the checks before any command changes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from voxveil.runtime.atomic import file_lock
from voxveil.runtime.errors import DataError, InputError
from voxveil.runtime.project import nearest_above

__all__ = ["FOLDER", "Dataset", "check_name", "find_root", "one_at_a_time", "refuse_merge_marks"]

#: Folder of all datasets, relative to the root.
FOLDER = "data"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z")
_MARK = re.compile(r"^(<{7}|>{7})( |$)", re.MULTILINE)


@dataclass(frozen=True)
class Dataset:
    """The files of one dataset.

    Attributes:
        root: Folder that holds ``.dvc``.
        name: Name of the dataset.
    """

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The data itself."""
        return self.root / FOLDER / self.name

    @property
    def tracked(self) -> Path:
        """DVC's pointer to the data."""
        return self.root / FOLDER / f"{self.name}.dvc"

    @property
    def manifest(self) -> Path:
        """Table of utterances."""
        return self.root / FOLDER / f"{self.name}.manifest.tsv"

    @property
    def summary(self) -> Path:
        """Summary."""
        return self.root / FOLDER / f"{self.name}.json"

    @property
    def unfinished(self) -> Path:
        """Mark of a change that was begun; it goes when the change is complete."""
        return self.root / ".dvc" / "tmp" / f"voxveil-{self.name}.partial"

    @property
    def in_git(self) -> tuple[str, ...]:
        """The files to commit, relative to the root."""
        paths = (self.tracked, self.manifest, self.summary)
        return (*(f"{FOLDER}/{path.name}" for path in paths), f"{FOLDER}/.gitignore")


def check_name(name: str) -> str:
    """Return a dataset's name; it becomes a file name.

    Raises:
        InputError: It is not made of letters, digits, ``_``, ``-`` and single dots.
    """
    if not _NAME.match(name) or name.endswith((".dvc", ".json", ".manifest", ".tsv")):
        raise InputError(
            f"dataset name {name!r}: must begin with a letter or digit and be made of letters, digits, _ - ."
        )
    return name


def find_root(start: Path | None = None) -> Path:
    """Return the nearest folder upwards that holds ``.dvc``.

    Raises:
        DataError: There is none.
    """
    here = (Path.cwd() if start is None else start).absolute()
    found = nearest_above(here, ".dvc")
    if found is None:
        raise DataError(f"{here}: no .dvc in this folder or one above; 'git init && dvc init' makes it")
    return found


@contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Wait until no other process changes datasets of this project.

    A lock of the operating system, not a process id in a file: it works between containers on one
    mounted tree, and goes with the process that holds it.
    """
    with file_lock(root / ".dvc" / "tmp" / "voxveil-data.lock"):
        yield


def refuse_merge_marks(dataset: Dataset) -> None:
    """Raise an error if Git merge conflict markers are in the dataset's files.

    Raises:
        InputError: Naming the file and how to go on.
    """
    theirs = (dataset.tracked, dataset.manifest, dataset.summary)
    for path in theirs:
        if _marked(path):
            names = " ".join(f"{FOLDER}/{file.name}" for file in theirs)
            raise InputError(
                f"{path}: holds the marks of a git merge; take one side whole,"
                f" 'git checkout --ours -- {names}' (or --theirs), then"
                f" 'dvc checkout --force {FOLDER}/{dataset.tracked.name}'; what both sides added:"
                f" 'voxveil data add {dataset.name} DIR' after that; nothing was changed"
            )
    lock = dataset.root / "dvc.lock"
    if _marked(lock):
        raise InputError(
            f"{lock}: holds the marks of a git merge; 'git checkout --ours -- dvc.lock', then 'dvc repro'"
            " rebuilds it; nothing was changed"
        )


def _marked(path: Path) -> bool:
    return path.is_file() and _MARK.search(path.read_text(encoding="utf-8", errors="replace")) is not None
