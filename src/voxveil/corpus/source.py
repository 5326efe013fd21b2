"""An unprepared corpus: its clips, how to read one, and the check of audio files before a long job.

Audio lies in plain files, or in tar shards ``audio-NNN.tar/UTT.SUFFIX`` in any format and rate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.containers import OTHER_AUDIO, SUFFIXES
from voxveil.audio.files import Recording, read_recording
from voxveil.corpus.split import Phone
from voxveil.runtime.errors import InputError
from voxveil.runtime.filenames import NOT_UTF8, printable, utf8_name
from voxveil.runtime.shards import ShardReader

__all__ = [
    "SHARD_STEM",
    "Clip",
    "FileSource",
    "Finding",
    "Reading",
    "Source",
    "audio_files",
    "check_clips",
    "check_file",
    "clip_file",
]

#: Shards are named ``audio-000.tar``.
SHARD_STEM = "audio"


@dataclass(frozen=True)
class Clip:
    """One utterance of a corpus.

    Attributes:
        id: Utterance id, unique in the corpus.
        speaker: Speaker id.
        sex: ``F`` or ``M``.
        text: Transcript in upper case, empty where there is none.
        subset: Part of the corpus it belongs to, empty where there are no parts.
        path: Its file; None where audio is made, not read.
    """

    id: str
    speaker: str
    sex: str
    text: str = ""
    subset: str = ""
    path: Path | None = None


@dataclass(frozen=True)
class Reading:
    """A clip's audio.

    Attributes:
        audio: (n,) at 16 kHz.
        flags: What was done to it.
        phones: Its phones in order, where they are known.
        states: (K,) triphone state of each frame, where they are known.
    """

    audio: NDArray[np.float32]
    flags: tuple[str, ...] = ()
    phones: Sequence[Phone] | None = None
    states: NDArray[np.int16] | None = None


class Source(Protocol):
    """A corpus that can be prepared."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def synthetic(self) -> bool:
        """True for synthetic speech."""

    @property
    def clips(self) -> tuple[Clip, ...]:
        """All clips, sorted by id."""

    def read(self, clip: Clip) -> Reading:
        """Return the audio of a clip; raises :class:`InputError` naming it if it cannot be used."""


@dataclass(frozen=True)
class FileSource:
    """A corpus of audio files; it can be prepared, and attacked as it is.

    Attributes:
        folder: Folder of the corpus.
        clips: All clips, sorted by id.
        shards: Reader of the tar shards, where some or all clips lie in such.
    """

    folder: Path
    clips: tuple[Clip, ...]
    shards: ShardReader | None = None

    synthetic = False

    @property
    def name(self) -> str:
        """Name in reports."""
        return self.folder.resolve().name

    @cached_property
    def _by_id(self) -> dict[str, Clip]:
        return {clip.id: clip for clip in self.clips}

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker ids, sorted."""
        return tuple(sorted({clip.speaker for clip in self.clips}))

    def __iter__(self) -> Iterator[Clip]:
        return iter(self.clips)

    def __contains__(self, item: str) -> bool:
        return item in self._by_id

    def audio(self, item: str) -> NDArray[np.float32]:
        """Return (samples,) float32 at 16 kHz of an utterance."""
        if item not in self._by_id:
            raise InputError(f"utterance {item}: not in {self.folder}")
        return self.read(self._by_id[item]).audio

    def read(self, clip: Clip) -> Reading:
        """Read the clip's file by the rules of :mod:`voxveil.audio.files`; silence is refused."""
        with clip_file(self, clip) as path:
            try:
                recording = _read_audible(path)
            except InputError as error:
                # A file that was taken from a shard is called by its name there.
                raise InputError(str(error).replace(str(path), str(clip.path))) from None
        return Reading(recording.audio, recording.flags)


@contextmanager
def clip_file(source: Source, clip: Clip) -> Iterator[Path]:
    """Yield a file with the clip's audio: its own, or a temporary one within the block.

    Raises:
        InputError: The clip has no file.
    """
    if clip.path is None:
        raise InputError(f"utterance {clip.id}: has no file")
    shards = source.shards if isinstance(source, FileSource) else None
    if shards is None or clip.path.parent.suffix != ".tar":
        yield clip.path
        return
    with tempfile.TemporaryDirectory(prefix="voxveil-") as folder:
        path = Path(folder) / f"clip{clip.path.suffix}"
        path.write_bytes(shards.read(clip.id))
        yield path


def _read_audible(path: Path) -> Recording:
    recording = read_recording(path)
    if "silent" in recording.flags:
        raise InputError(f"{path}: refused, all its samples are equal in 16 bit (silence)")
    return recording


def check_clips(clips: Sequence[Clip], where: str) -> tuple[Clip, ...]:
    """Return clips sorted by id; an id twice, or a speaker of two sexes, is an error."""
    ordered = sorted(clips, key=lambda clip: clip.id)
    sexes: dict[str, str] = {}
    for before, clip in zip([None, *ordered], ordered):
        if before is not None and before.id == clip.id:
            raise InputError(f"{where}: utterance {clip.id} is there twice ({before.path}, {clip.path})")
        if sexes.setdefault(clip.speaker, clip.sex) != clip.sex:
            raise InputError(f"{where}: speaker {clip.speaker} is given as both F and M")
    return tuple(ordered)


@dataclass(frozen=True)
class Finding:
    """Result of the check of one file.

    Attributes:
        path: The file.
        refused: Why it cannot be used, in one line; empty if it can.
        flags: What would be done to it, or was seen in it.
        seconds: Its length.
    """

    path: Path
    refused: str = ""
    flags: tuple[str, ...] = ()
    seconds: float = 0.0


def audio_files(folder: Path) -> Iterator[Path]:
    """Yield every file below ``folder`` with the name of an audio file, read here or not, sorted."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES + OTHER_AUDIO and not path.is_dir():
            yield path


def check_file(path: Path) -> Finding:
    """Read one file completely, by the rules of a corpus: silence is an error."""
    if utf8_name(path) is None:
        return Finding(path, f"{printable(path)}: {NOT_UTF8}")
    try:
        recording = _read_audible(path)
    except InputError as error:
        return Finding(path, str(error))
    return Finding(path, "", recording.flags, recording.source_samples / recording.source_rate)
