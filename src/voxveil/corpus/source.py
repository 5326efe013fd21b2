"""Interface of an unprepared corpus: its clips and how to read one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import read_recording
from voxveil.corpus.split import Phone
from voxveil.runtime.errors import InputError

__all__ = ["Clip", "FileSource", "Reading", "Source", "check_clips"]


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
    """A corpus of audio files."""

    name: str
    clips: tuple[Clip, ...]
    synthetic: bool = False

    def read(self, clip: Clip) -> Reading:
        """Read the clip's file by the rules of :mod:`voxveil.audio.files`; silence is refused."""
        if clip.path is None:
            raise InputError(f"utterance {clip.id}: has no file")
        recording = read_recording(clip.path)
        if "silent" in recording.flags:
            raise InputError(f"{clip.path}: refused, all its samples are equal in 16 bit (silence)")
        return Reading(recording.audio, recording.flags)


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
