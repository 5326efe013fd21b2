"""Removal of one speaker from the current version of a dataset."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from voxveil.corpus.opening import open_folder
from voxveil.corpus.source import Clip
from voxveil.datasets.adding import Reports, finish_version, ready, require_unchanged
from voxveil.datasets.dataset import FOLDER, Dataset, one_at_a_time
from voxveil.datasets.face import Face, Row, parse_face, parse_manifest
from voxveil.datasets.holdings import names_speaker, speaker_rows
from voxveil.datasets.packing import corpus_files, corpus_rows, pack_corpus
from voxveil.runtime.atomic import whole_directory
from voxveil.runtime.errors import InputError

__all__ = ["current_datasets", "forget_speaker"]

_TEXT = {".txt", ".scp", ".ctm", ".tsv", ".csv", ".json", ".jsonl", ".dur", ""}
_WORD = re.compile(r"[^\s|,;\"']+")


def current_datasets(root: Path, speaker: str, names: Sequence[str] = ()) -> list[Dataset]:
    """Return the datasets of the work tree whose manifest names the speaker, sorted."""
    found = []
    for path in sorted((root / FOLDER).glob("*.manifest.tsv")):
        name = path.name.removesuffix(".manifest.tsv")
        if names and name not in names:
            continue
        dataset = ready(root, name)
        if speaker_rows(parse_manifest(path.read_text(encoding="utf-8"), str(path)), speaker):
            found.append(dataset)
    return found


def forget_speaker(dataset: Dataset, speaker: str, reports: Reports) -> Face:
    """Write the next version of a dataset without the speaker, atomically.

    Args:
        dataset: The dataset; its data must be there (``dvc pull``) and unchanged.
        speaker: Speaker id.
        reports: Told the progress.

    Returns:
        The summary of the new version.

    Raises:
        InputError: The data are not there or were changed, nobody else is left, or a file would still
            name the speaker.
        DataError: Git or DVC refuses.
    """
    with one_at_a_time(dataset.root):
        if not dataset.folder.is_dir():
            raise InputError(
                f"{dataset.folder}: is missing; run 'dvc pull {FOLDER}/{dataset.tracked.name}' first"
            )
        require_unchanged(dataset)
        face = parse_face(dataset.summary.read_text(encoding="utf-8"), str(dataset.summary))
        source = open_folder(dataset.folder)
        gone = [clip for clip in source.clips if clip.speaker == speaker]
        kept = [clip for clip in source.clips if clip.speaker != speaker]
        if not kept:
            raise InputError(
                f"dataset {dataset.name}: {speaker} is its only speaker; 'dvc remove"
                f" {FOLDER}/{dataset.tracked.name}' and 'git rm' of its manifest and summary remove it whole"
            )
        with whole_directory(dataset.folder) as out:
            if source.shards is not None:
                rows = pack_corpus(source, out, kept, reports(len(kept)))
            else:
                _copy_without(dataset.folder, out, speaker, gone, kept)
                rows = corpus_rows(open_folder(out), reports(len(kept)))
            _require_gone(out, speaker, gone, kept, rows)
            dataset.unfinished.parent.mkdir(parents=True, exist_ok=True)
            dataset.unfinished.touch()
        return finish_version(dataset, rows, public=face.public, storage=face.storage)


def _copy_without(folder: Path, out: Path, speaker: str, gone: Sequence[Clip], kept: Sequence[Clip]) -> None:
    utterances = {clip.id for clip in gone}
    audio = {clip.path.absolute() for clip in gone if clip.path is not None}
    # A folder of that name may also be somebody else's chapter.
    shared = {parent for clip in kept if clip.path is not None for parent in clip.path.absolute().parents}
    for inner in corpus_files(folder):
        if (
            any(
                parent.name == speaker and (folder / parent).absolute() not in shared
                for parent in inner.parents
            )
            or (folder / inner).absolute() in audio
            or any(inner.name.startswith(f"{utterance}.") for utterance in _heads(inner.name) & utterances)
        ):
            continue
        (out / inner).parent.mkdir(parents=True, exist_ok=True)
        if inner.suffix.lower() not in _TEXT:
            shutil.copyfile(folder / inner, out / inner)
            continue
        # Bytes that are not UTF-8 (LibriTTS tables hold some) come out as they went in.
        text = (folder / inner).read_text(encoding="utf-8", errors="surrogateescape")
        lines = [line for line in text.split("\n") if not _about(line, inner.name, speaker, utterances)]
        (out / inner).write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")


def _heads(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


def _about(line: str, table: str, speaker: str, utterances: set[str]) -> bool:
    """Return whether a line of a table is about the speaker.

    A number at the start of a line is a speaker only in tables of speakers: a transcript may begin with it.
    """
    if not utterances.isdisjoint(_WORD.findall(line)):
        return True
    if table.startswith("spk2"):
        return line.split()[:1] == [speaker]
    fields = [field.strip() for field in re.split(r"[|\t]", line)]
    if table.upper().startswith("CHAPTERS"):
        return fields[1:2] == [speaker]
    return table.upper().startswith("SPEAKERS") and fields[0] == speaker


def _require_gone(
    out: Path, speaker: str, gone: Sequence[Clip], kept: Sequence[Clip], rows: Sequence[Row]
) -> None:
    if [row.utterance for row in rows] != [clip.id for clip in kept]:
        raise InputError(
            f"speaker {speaker}: utterances of other speakers would be removed too; nothing was changed"
        )
    utterances = {clip.id for clip in gone}
    for inner in corpus_files(out):
        if names_speaker(out / inner, speaker, utterances):
            raise InputError(
                f"speaker {speaker}: {inner} would still name them; take them out of it by hand,"
                " 'voxveil data add', and try again; nothing was changed"
            )
