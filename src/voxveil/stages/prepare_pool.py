"""The work of prepare on one clip, spread over processes; results come in the order asked for."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.io import decode, encode_flac, pad_short
from voxveil.corpus.source import Clip, Source
from voxveil.corpus.split import Phone
from voxveil.errors import InputError
from voxveil.pitch.yaapt import track_f0

__all__ = ["Bad", "Prepared", "prepare_clip", "prepared"]

_CHUNK = 8


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
    work = partial(prepare_clip, source)
    if workers == 1:
        yield from map(work, clips)
        return
    # Spawned, not forked: numerical libraries may have threads by now.
    context = multiprocessing.get_context("spawn")
    with (
        _one_thread_each(),
        ProcessPoolExecutor(min(workers, max(1, len(clips))), context, _end_with_parent) as pool,
    ):
        try:
            yield from pool.map(work, clips, chunksize=_CHUNK)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Worker set-up: die when the stage is killed, whichever way."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries of the workers read this when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
