"""Dataset versions in Git and finished outputs that contain a speaker."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.datasets.face import Row, parse_manifest
from voxveil.datasets.git import file_at, files_at, refs
from voxveil.datasets.history import all_versions
from voxveil.datasets.place import FOLDER
from voxveil.runtime.done import DONE
from voxveil.runtime.errors import InputError

__all__ = [
    "Holding",
    "Output",
    "holding_refs",
    "holdings_in_git",
    "names_speaker",
    "outputs_with",
    "speaker_rows",
]

_SUFFIXES = {".json", ".jsonl", ".txt", ".scp", ".tsv", ".csv", ".ctm", ".html", ""}
_TABLES = {"utt2spk", "spk2utt", "spk2gender", "utt2dur", "text"}
_WORD = re.compile(r"[^\s\"',:|=<>\[\]{}()/]+")
_AUDIO = re.compile(r"(\.original|\.anonymized)?\.(flac|wav|npy)\Z")


@dataclass(frozen=True)
class Holding:
    """A committed dataset version that holds the speaker.

    Attributes:
        dataset: Name of the dataset.
        commit: Full commit id.
        date: Of the commit.
        manifest_sha256: The version's hash; empty where its summary cannot be read.
        rows: The speaker's utterances in it.
    """

    dataset: str
    commit: str
    date: str
    manifest_sha256: str
    rows: tuple[Row, ...]


@dataclass
class Output:
    """A finished output that names the speaker or one of their utterances.

    Attributes:
        folder: The output.
        stage: Who made it.
        files: The files that name them, relative to ``folder``.
        revision: Digest of the prepared corpus, where the output is one.
    """

    folder: Path
    stage: str
    files: list[str] = field(default_factory=list)
    revision: str = ""


def speaker_rows(rows: Sequence[Row], speaker: str) -> tuple[Row, ...]:
    """Return the rows of one speaker."""
    return tuple(row for row in rows if row.speaker == speaker)


def holdings_in_git(root: Path, speaker: str, names: Sequence[str] = ()) -> tuple[list[Holding], list[str]]:
    """Return every version in every branch and tag that holds the speaker, and those that cannot be read.

    The versions come by dataset, newest first; the others as one line each.
    """
    found, faults = [], []
    for version in all_versions(root, names, everywhere=True):
        where = f"{version.commit[:12]}:{FOLDER}/{version.name}.manifest.tsv"
        text = file_at(root, version.commit, f"{FOLDER}/{version.name}.manifest.tsv")
        try:
            rows = speaker_rows(parse_manifest(text, where), speaker)
        except InputError as error:
            faults.append(f"{error}; not searched")
            continue
        if rows:
            digest = version.face.manifest_sha256 if version.face else ""
            found.append(Holding(version.name, version.commit, version.date, digest, rows))
    return found, faults


def holding_refs(root: Path, holdings: Sequence[Holding]) -> list[str]:
    """Return the branches and tags (full names) whose tip holds one of these versions, sorted."""
    names = sorted({holding.dataset for holding in holdings})
    speakers = {row.speaker for holding in holdings for row in holding.rows}
    found = []
    for ref, commit in refs(root).items():
        files = files_at(root, commit, FOLDER)
        for name in names:
            manifest = f"{name}.manifest.tsv"
            if manifest not in files:
                continue
            rows = parse_manifest(file_at(root, commit, f"{FOLDER}/{manifest}"), f"{ref}:{manifest}")
            if any(row.speaker in speakers for row in rows):
                found.append(ref)
                break
    return sorted(found)


def outputs_with(root: Path, speaker: str, utterances: Collection[str]) -> list[Output]:
    """Return the finished outputs below ``outputs`` and ``models`` that name the speaker, sorted.

    A split is searched for the speaker's id; every other text file, array and file name for their
    utterance ids (an id such as ``61`` would be found anywhere).
    """
    found: dict[Path, Output] = {}
    for path in _files(root):
        if not names_speaker(path, speaker, set(utterances)):
            continue
        folder = next((parent for parent in path.parents if (parent / DONE).is_file()), path.parent)
        output = found.setdefault(folder, _output(folder))
        output.files.append(path.relative_to(folder).as_posix())
    return [found[folder] for folder in sorted(found)]


def _files(root: Path) -> Iterator[Path]:
    for top in ("outputs", "models"):
        for path in sorted((root / top).rglob("*")):
            if path.is_file():
                yield path


def names_speaker(path: Path, speaker: str, utterances: set[str]) -> bool:
    """Return whether a file's name or content names the speaker or one of their utterances."""
    if _AUDIO.sub("", path.name) in utterances:
        return True
    if path.name == "manifest.jsonl":
        return _split_names(path, speaker)
    if path.name in ("spk2gender", "spk2utt"):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        return any(line.partition(" ")[0] == speaker for line in lines)
    if path.suffix == ".npz":
        return _arrays_name(path, utterances)
    if path.suffix not in _SUFFIXES or (not path.suffix and path.name not in _TABLES):
        return False
    with path.open(encoding="utf-8", errors="replace") as handle:
        return any(_AUDIO.sub("", word) in utterances for line in handle for word in _WORD.findall(line))


def _split_names(path: Path, speaker: str) -> bool:
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row: Any = json.loads(line or "{}")
        except ValueError:
            raise InputError(f"{path}: not a manifest of a split; it cannot be searched") from None
        if isinstance(row, dict) and row.get("speaker") == speaker:
            return True
    return False


def _arrays_name(path: Path, utterances: set[str]) -> bool:
    with np.load(path, allow_pickle=False) as arrays:
        return any(
            not utterances.isdisjoint(arrays[name].ravel().tolist())
            for name in arrays.files
            if arrays[name].dtype.kind == "U"
        )


def _output(folder: Path) -> Output:
    stage, revision = "", ""
    for name, key in ((DONE, "stage"), ("corpus.json", "revision")):
        if (folder / name).is_file():
            content = json.loads((folder / name).read_text(encoding="utf-8"))
            value = str(content.get(key, "")) if isinstance(content, dict) else ""
            stage, revision = (value, revision) if key == "stage" else (stage, value)
    return Output(folder, stage or "unknown", [], revision)
