"""Dataset versions in Git and finished outputs that contain a speaker."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from voxveil.datasets.dataset import FOLDER
from voxveil.datasets.face import Row, parse_manifest
from voxveil.datasets.git import file_at, files_at, git, refs
from voxveil.datasets.history import all_versions
from voxveil.runtime.done import DONE
from voxveil.runtime.dvc_program import dvc
from voxveil.runtime.errors import DataError, InputError

__all__ = [
    "Holding",
    "Output",
    "holding_refs",
    "holdings_in_git",
    "names_speaker",
    "outputs_with",
    "past_revisions",
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


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STAGE = "prepare"


def past_revisions(root: Path, speaker: str) -> set[str]:
    """Return the digests of prepared corpora in history that hold the speaker, on either side.

    What the cache no longer holds cannot be searched and gives nothing.

    Raises:
        DataError: Git or DVC refuses.
    """
    locks = _locks(root)
    if not locks:
        return set()
    cache = Path(dvc(root, "cache", "dir").strip())
    sides_of = {md5: _side(cache, md5, speaker) for md5 in {md5 for outputs in locks for md5 in outputs}}
    found: set[str] = set()
    for outputs in locks:
        sides = [sides_of[md5] for md5 in outputs]
        if any(holds_speaker for _, holds_speaker in sides):
            found |= {revision for revision, _ in sides if revision}
    return found


def _locks(root: Path) -> list[tuple[str, ...]]:
    """Return the digests of the prepared folders of each ``dvc.lock`` in any branch, tag or experiment."""
    found: dict[tuple[str, ...], None] = {}
    for commit in git(
        root, "log", "--all", "HEAD", "--full-history", "--format=%H", "--", "dvc.lock"
    ).split():
        try:
            content: Any = yaml.load(file_at(root, commit, "dvc.lock"), Loader=_LOADER)  # noqa: S506
            outputs = content["stages"][_STAGE]["outs"]
            found[tuple(str(output["md5"]) for output in outputs)] = None
        except (DataError, yaml.YAMLError, KeyError, TypeError):
            # Removed in that commit, left with the marks of a merge, or of another pipeline.
            continue
    return list(found)


def _side(cache: Path, md5: str, speaker: str) -> tuple[str, bool]:
    """Return the digest of one prepared folder and whether it holds the speaker."""
    revision, holds_speaker = "", False
    for name, content in _facts(cache, md5):
        if name == "corpus.json":
            revision = str(content[0].get("revision", "")) if content else ""
        elif name.rpartition("/")[2] == "manifest.jsonl":
            holds_speaker = holds_speaker or any(row.get("speaker") == speaker for row in content)
    return revision, holds_speaker


def _facts(cache: Path, md5: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the facts and manifests of a folder: name and the JSON objects in it."""
    for entry in _objects(cache, md5):
        name = str(entry.get("relpath", ""))
        if name == "corpus.json" or name.endswith("manifest.jsonl"):
            yield name, _objects(cache, str(entry.get("md5", "")), lines=name.endswith("jsonl"))


def _objects(cache: Path, md5: str, *, lines: bool = False) -> list[dict[str, Any]]:
    try:
        text = (cache / "files/md5" / md5[:2] / md5[2:]).read_text(encoding="utf-8")
        content = [json.loads(line) for line in text.split("\n") if line] if lines else json.loads(text)
    except (OSError, ValueError):
        return []
    return [item for item in (content if isinstance(content, list) else [content]) if isinstance(item, dict)]
