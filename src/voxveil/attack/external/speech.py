"""External speech under attack: test sets, and the opening of folders.

Nothing here knows how the speech was anonymized.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voxveil.attack.fusion import Joined
from voxveil.corpus.kaldi import read_kaldi
from voxveil.corpus.opening import open_folder
from voxveil.corpus.source import Clip, FileSource
from voxveil.corpus.split import Speech, Split
from voxveil.corpus.trials import TrialLists
from voxveil.runtime.done import file_sha256

__all__ = ["External", "TestSet", "open_speech", "speech_digest"]


@dataclass(frozen=True)
class TestSet:
    """A test set: trial lists, speech under attack, and training speech.

    Attributes:
        name: As in tables, e.g. ``libri_dev``.
        lists: Enrolments and trials.
        speech: Anonymized enrolment and trial utterances.
        original: The same utterances as they were, or None.
        train: Anonymized speech of other speakers, for the attackers.
        original_train: Original speech of other speakers, or None.
    """

    __test__ = False

    name: str
    lists: TrialLists
    speech: Speech
    original: Speech | None
    train: Speech
    original_train: Speech | None


@dataclass(frozen=True)
class External:
    """All test sets of a folder, with its layout.

    Attributes:
        layout: What it was taken for, in words.
        sets: At least one.
        notes: What a reader should know of how it was taken.
    """

    layout: str
    sets: tuple[TestSet, ...]
    notes: tuple[str, ...] = ()


def open_speech(folder: Path, roots: Sequence[Path] = ()) -> Speech:
    """Open a folder of speech: a prepared split, Kaldi tables, or LibriSpeech's layout.

    Args:
        folder: Where it lies.
        roots: Where files that a wav.scp names relatively are looked for, after the folder itself.
    """
    folder = Path(folder)
    if (folder / "manifest.jsonl").is_file():
        return Split(folder)
    if (folder / "wav.scp").is_file():
        return read_kaldi(folder, roots)
    return open_folder(folder)


def speech_digest(speech: Speech) -> str:
    """Return a digest of a version of speech: content of a split, or size and time of its files."""
    if isinstance(speech, Split):
        return file_sha256(speech.folder / "manifest.jsonl")
    if isinstance(speech, Joined):
        lines = [speech_digest(part) for part in speech.parts]
    elif isinstance(speech, FileSource):
        lines = [_clip_line(clip) for clip in speech.clips]
    else:
        lines = [f"{item.id} {item.speaker} {item.sex}" for item in speech]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _clip_line(clip: Clip) -> str:
    line = f"{clip.id} {clip.speaker} {clip.sex}"
    # A clip inside a shard: the shard is the file.
    path = clip.path.parent if clip.path is not None and clip.path.parent.suffix == ".tar" else clip.path
    if path is None or not path.is_file():
        return line
    about = path.stat()
    return f"{line} {about.st_size} {about.st_mtime_ns}"
