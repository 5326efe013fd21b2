"""The work of prepare on one clip, spread over processes; results come in the order asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import decode, encode_flac, pad_short
from voxveil.corpus.source import Clip, Source
from voxveil.corpus.split import Phone
from voxveil.features.pitch.yaapt import track_f0
from voxveil.runtime.errors import InputError
from voxveil.runtime.workers import in_processes

__all__ = ["Bad", "Prepared", "prepare_clip", "prepared"]


@dataclass(frozen=True)
class Prepared:
    """One clip as it is stored.

    Attributes:
        flac: 16 kHz mono FLAC.
        samples: Its sample count.
        f0: (K,) F0 in Hz of the stored audio, 0 where unvoiced.
        phones: Phone timing, None where it is not known.
        states: (K,) triphone states, None where they are not known.
        flags: What was done to the audio or seen in it.
        clipped: Samples that were clipped when stored.
    """

    flac: bytes
    samples: int
    f0: NDArray[np.float32]
    phones: Sequence[Phone] | None
    states: NDArray[np.int16] | None
    flags: tuple[str, ...]
    clipped: int


@dataclass(frozen=True)
class Bad:
    """A clip that cannot be used, and why."""

    utterance: str
    reason: str


def prepare_clip(source: Source, clip: Clip) -> Prepared | Bad:
    """Read, pad, encode and track one clip."""
    try:
        reading = source.read(clip)
    except InputError as error:
        return Bad(clip.id, str(error))
    audio = pad_short(reading.audio)
    flac, clipped = encode_flac(audio, clip.id)
    # F0 of what is stored, so that it is the F0 of what later stages hear.
    f0 = track_f0(decode(flac, clip.id))
    flags = set(reading.flags)
    if len(audio) > len(reading.audio):
        flags.add("padded")
    if not f0.any():
        flags.add("unvoiced")
    return Prepared(flac, len(audio), f0, reading.phones, reading.states, tuple(sorted(flags)), clipped)


def prepared(source: Source, clips: Sequence[Clip], workers: int) -> Iterator[Prepared | Bad]:
    """Yield the result of each clip in order.

    Args:
        source: The corpus.
        clips: What to prepare.
        workers: Processes; 1 = this one.
    """
    yield from in_processes(partial(prepare_clip, source), clips, workers)
