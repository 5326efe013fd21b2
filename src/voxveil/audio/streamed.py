"""Block-wise reading and writing of long recordings, by the rules of :mod:`voxveil.audio.files`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import (
    DC_LIMIT,
    FULL_SCALE,
    QUIET_PEAK,
    expected_samples,
    flags_of,
    opened_recording,
    to_int16,
)
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.loudness import LoudnessMeter
from voxveil.runtime.errors import InputError, optional_module

__all__ = ["SlidingAudio", "Spool", "StreamedRecording", "announced_seconds", "survey"]

Audio = NDArray[np.float32]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class StreamedRecording:
    """Length and flags of a recording, found by a first pass over it.

    Attributes:
        path: The file.
        source_rate: Its sampling rate in Hz.
        source_samples: Samples per channel in the file.
        flags: What reading does or saw; sorted.
        offset: What is subtracted.
    """

    path: Path
    source_rate: int
    source_samples: int
    flags: tuple[str, ...]
    offset: float

    @property
    def samples(self) -> int:
        """Sample count at 16 kHz."""
        return expected_samples(self.source_samples, self.source_rate)

    def blocks(self) -> Iterator[Audio]:
        """Yield the recording as 16 kHz mono (n,) float32, :attr:`samples` in all.

        Raises:
            InputError: It changed since the first reading.
        """
        left = self.samples
        for block in self._resampled():
            piece = block[:left].astype(np.float32)
            left -= len(piece)
            yield piece
        if left:
            yield np.zeros(left, np.float32)

    def _resampled(self) -> Iterator[NDArray[np.float64]]:
        if self.source_rate == SAMPLE_RATE:
            yield from self._mono()
            return
        soxr = optional_module("soxr", "data")
        stream = soxr.ResampleStream(self.source_rate, SAMPLE_RATE, 1, dtype="float64", quality="HQ")
        for block in self._mono():
            yield np.asarray(stream.resample_chunk(block))
        yield np.asarray(stream.resample_chunk(np.zeros(0), last=True))

    def _mono(self) -> Iterator[NDArray[np.float64]]:
        count = 0
        with opened_recording(self.path, str(self.path)) as opened:
            for block in opened.blocks():
                count += len(block)
                yield block.mean(axis=1, dtype=np.float64) - self.offset
        if count != self.source_samples:
            raise InputError(f"{self.path}: changed while it was being read")


def announced_seconds(path: Path) -> float:
    """Return the length that a recording's header announces; 0 where there is no header to read.

    Decides how to read only; what is in the file is found by reading it.
    """
    try:
        with opened_recording(path, str(path)) as opened:
            return opened.announced / opened.rate
    except InputError:
        return 0.0


def survey(path: Path) -> StreamedRecording:
    """Read a recording once, keeping none of it.

    Raises:
        InputError: One line that names the file and says why it is refused.
    """
    path = Path(path)
    count = clipped = channels = 0
    total, low, high = 0.0, np.inf, -np.inf
    with opened_recording(path, str(path)) as opened:
        for block in opened.blocks():
            mono = block.mean(axis=1, dtype=np.float64)
            channels = block.shape[1]
            count += len(block)
            clipped += int(np.count_nonzero(np.abs(block) >= FULL_SCALE))
            total += float(mono.sum())
            low, high = min(low, float(mono.min())), max(high, float(mono.max()))
    mean = total / count
    flags = flags_of(
        path,
        opened.rate,
        opened.format,
        channels=channels,
        clipped=clipped / (count * channels),
        span=high - low,
        offset=mean,
    )
    offset = mean if abs(mean) > DC_LIMIT or "silent" in flags else 0.0
    if "silent" not in flags and max(high - offset, offset - low) < QUIET_PEAK:
        flags.add("quiet")
    return StreamedRecording(path, opened.rate, count, tuple(sorted(flags)), offset)


class SlidingAudio:
    """Pieces of a stream of blocks, each beginning no earlier than the one before.

    Args:
        blocks: (n,) float32 each.
    """

    def __init__(self, blocks: Iterable[Audio]) -> None:
        self._blocks = iter(blocks)
        self._kept = np.zeros(0, np.float32)
        self._first = 0

    def take(self, start: int, stop: int) -> Audio:
        """Return samples ``start`` to ``stop``, with zeros behind the end of the stream."""
        parts = [self._kept[start - self._first :]]
        have = len(parts[0])
        while have < stop - start:
            block = next(self._blocks, None)
            if block is None:
                block = np.zeros(stop - start - have, np.float32)
            parts.append(block)
            have += len(block)
        self._kept = np.concatenate(parts)
        self._first = start
        return self._kept[: stop - start]


class Spool:
    """Audio kept in a file until its loudness is known.

    Use :func:`Spool.beside`.
    """

    def __init__(self, handle: Any, partial: Path) -> None:
        self._handle, self._partial = handle, partial
        self._meter = LoudnessMeter()

    @classmethod
    @contextmanager
    def beside(cls, output: Path) -> Iterator[Spool]:
        """Yield a spool in the folder of ``output``; its files are gone afterwards."""
        output.parent.mkdir(parents=True, exist_ok=True)
        spool = output.with_name(f".{output.name}.{os.getpid()}.spool.partial")
        partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
        try:
            with spool.open("w+b") as handle:
                yield cls(handle, partial)
        finally:
            spool.unlink(missing_ok=True)
            partial.unlink(missing_ok=True)

    def write(self, audio: Audio) -> None:
        """Append (n,) samples."""
        self._meter.push(audio)
        self._handle.write(audio.astype(np.float32).tobytes())

    def store(self, output: Path, file_format: str, lufs: float | None) -> int:
        """Write 16-bit mono audio to ``output`` atomically and return the number of clipped samples.

        Args:
            output: The file.
            file_format: ``FLAC`` or ``WAV``.
            lufs: Its loudness; None leaves the level as it is.
        """
        import soundfile

        gain = 1.0 if lufs is None else self._meter.gain(lufs)
        clipped = 0
        self._handle.seek(0)
        with self._partial.open("wb") as raw:
            with soundfile.SoundFile(raw, "w", SAMPLE_RATE, 1, format=file_format, subtype="PCM_16") as file:
                while data := self._handle.read(4 * _BLOCK):
                    block = np.frombuffer(data, np.float32) * gain
                    clipped += int(np.count_nonzero(np.abs(block) > 1.0))
                    file.write(to_int16(block))
            raw.flush()
            os.fsync(raw.fileno())
        self._partial.replace(output)
        return clipped
