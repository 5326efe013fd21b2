"""Reading of recordings as 16 kHz mono, and encoding as 16-bit FLAC.

Rules for a recording, each shown as a flag or a refusal:

==================  ==========================================================================
source              what happens
==================  ==========================================================================
no audio file,
broken, cut short   refused: the file is named
other container     refused: see :mod:`voxveil.audio.containers`
0 samples           refused
NaN or infinity     refused
peak above 2^31     refused: no scale of samples reaches it
under 8 kHz         refused
other rates         resampled to exactly ``ceil(n 16000 / rate)`` samples; ``resampled``
8 kHz to 16 kHz     as above; also ``band_limited``
several channels    downmixed by their mean; ``downmixed``
DC offset           above 1 % of full scale: the mean is subtracted; ``dc_offset``
all samples equal   in 16 bit: ``silent``; :func:`read_recording` keeps it, a corpus refuses it
under 0.1 s         ``short``; :func:`read_recording` keeps it, a corpus pads it with zeros
peak under -60 dB   kept; ``quiet``
at full scale       over 0.1 % of the samples: kept; ``clipped``
another name        the content decides, not the suffix; ``mislabelled``
==================  ==========================================================================
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.containers import CONTAINERS, SUFFIXES, cut_short, not_read
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.runtime.errors import IncompleteInputError, InputError, optional_module

__all__ = [
    "DC_LIMIT",
    "FULL_SCALE",
    "MIN_RATE",
    "QUIET_PEAK",
    "SHORT_SAMPLES",
    "OpenedRecording",
    "Recording",
    "decode",
    "encode_audio",
    "encode_flac",
    "expected_samples",
    "flags_of",
    "opened_recording",
    "pad_short",
    "read_recording",
    "to_int16",
]

Audio = NDArray[np.float32]

#: Lowest source rate that is accepted, in Hz.
MIN_RATE = 8_000
#: Fewer samples than this at 16 kHz (0.1 s) make a recording ``short``.
SHORT_SAMPLES = 1_600

_BLOCK = 1 << 16
#: Mean above which it is subtracted, peak below which a recording is quiet, and what counts as full scale.
DC_LIMIT, QUIET_PEAK, FULL_SCALE = 0.01, 1e-3, 0.999
_CLIPPED_SHARE = 1e-3
#: 32-bit integers stored as floats; far beyond, float32 overflows in spectra.
_LARGEST_PEAK = 2.0**31
_STEP_16_BIT = 1 / 32768


@dataclass(frozen=True)
class Recording:
    """A recording as voxveil works with it.

    Attributes:
        audio: (n,) float32, 16 kHz mono.
        source_rate: Sampling rate of the file in Hz.
        source_samples: Samples per channel in the file.
        flags: What was done or seen, sorted; the words of the module's table.
    """

    audio: Audio
    source_rate: int
    source_samples: int
    flags: tuple[str, ...] = ()


def expected_samples(samples: int, rate: int) -> int:
    """Return ``ceil(samples 16000 / rate)``, the length at 16 kHz, in exact integers."""
    return -(-samples * SAMPLE_RATE // rate)


def read_recording(path: Path, name: str = "") -> Recording:
    """Read any recording as 16 kHz mono by the rules of this module.

    Args:
        path: An audio file of any format libsndfile reads.
        name: What to call it in messages; the path unless told.

    Raises:
        InputError: One line that names the file and says why it is refused.
    """
    path = Path(path)
    where = name or str(path)
    try:
        with opened_recording(path, where) as opened:
            rate, samples = opened.rate, np.concatenate(list(opened.blocks()))
    except OSError as error:
        raise InputError(f"{where}: refused, cannot be read ({error.strerror or error})") from None
    audio = samples.mean(axis=1, dtype=np.float64)
    offset = float(audio.mean())
    flags = flags_of(
        path,
        rate,
        opened.format,
        channels=samples.shape[1],
        clipped=float(np.mean(np.abs(samples) >= FULL_SCALE)),
        span=float(np.ptp(audio)),
        offset=offset,
    )
    if abs(offset) > DC_LIMIT or "silent" in flags:
        audio = audio - offset
    if rate != SAMPLE_RATE:
        audio = _resample(audio, rate)
    if len(audio) < SHORT_SAMPLES:
        flags.add("short")
    if "silent" not in flags and np.abs(audio).max() < QUIET_PEAK:
        flags.add("quiet")
    return Recording(audio.astype(np.float32), rate, len(samples), tuple(sorted(flags)))


def flags_of(
    path: Path, rate: int, file_format: str, *, channels: int, clipped: float, span: float, offset: float
) -> set[str]:
    """Return the flags that do not depend on resampling.

    Args:
        path: The file.
        rate: Its sampling rate in Hz.
        file_format: Its container, as libsndfile names it.
        channels: Number of channels.
        clipped: Share of the samples at full scale.
        span: Largest minus smallest sample of the downmix.
        offset: Mean of the downmix.
    """
    seen = {
        "mislabelled": file_format not in CONTAINERS.get(path.suffix.lower(), {file_format}),
        "downmixed": channels > 1,
        "clipped": clipped > _CLIPPED_SHARE,
        "silent": span < _STEP_16_BIT,
        "dc_offset": abs(offset) > DC_LIMIT,
        "resampled": rate != SAMPLE_RATE,
        "band_limited": rate < SAMPLE_RATE,
    }
    return {name for name, so in seen.items() if so}


def pad_short(audio: Audio) -> Audio:
    """Return ``audio`` (n,) with zeros appended up to :data:`SHORT_SAMPLES`."""
    return np.pad(audio, (0, max(0, SHORT_SAMPLES - len(audio))))


def decode(data: bytes, name: str) -> Audio:
    """Decode stored audio.

    Args:
        data: 16 kHz mono FLAC, as :func:`encode_flac` makes it.
        name: Utterance id, for messages.

    Returns:
        (n,) float32 in [-1, 1).

    Raises:
        IncompleteInputError: The bytes are not that.
    """
    soundfile = optional_module("soundfile", "data")
    try:
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError, ValueError, MemoryError, OverflowError) as error:
        raise IncompleteInputError(
            f"utterance {name}: stored audio is not readable ({_reason(error)})"
        ) from None
    if rate != SAMPLE_RATE or samples.shape[1] != 1:
        raise IncompleteInputError(
            f"utterance {name}: stored audio must be 16000 Hz mono,"
            f" got {rate} Hz, {samples.shape[1]} channels"
        )
    audio: Audio = samples[:, 0]
    return audio


def encode_flac(audio: NDArray[np.floating], name: str) -> tuple[bytes, int]:
    """Encode as 16 kHz mono 16-bit FLAC; see :func:`encode_audio`."""
    return encode_audio(audio, name, "FLAC")


def encode_audio(audio: NDArray[np.floating], name: str, file_format: str) -> tuple[bytes, int]:
    """Encode as 16 kHz mono 16-bit audio.

    Args:
        audio: (n,) samples, n >= 1; full scale is 1. What lies beyond is clipped, never wrapped.
        name: Utterance id, for messages.
        file_format: ``FLAC`` or ``WAV``.

    Returns:
        The file's bytes and the number of clipped samples.

    Raises:
        InputError: NaN, infinity, no samples or another shape.
    """
    if audio.ndim != 1 or len(audio) == 0:
        raise InputError(
            f"utterance {name}: audio must be (samples,) with at least 1, got shape {audio.shape}"
        )
    bad = int(np.count_nonzero(~np.isfinite(audio)))
    if bad:
        raise InputError(
            f"utterance {name}: {bad} of {len(audio)} samples are NaN or infinite; nothing stored"
        )
    clipped = int(np.count_nonzero(np.abs(audio) > 1.0))
    buffer = io.BytesIO()
    soundfile = optional_module("soundfile", "data")
    soundfile.write(buffer, to_int16(audio), SAMPLE_RATE, format=file_format, subtype="PCM_16")
    return buffer.getvalue(), clipped


def to_int16(audio: NDArray[np.floating]) -> NDArray[np.int16]:
    """Return finite samples, full scale 1, as 16-bit integers, clipped at full scale."""
    integers: NDArray[np.int16] = np.clip(np.rint(audio.astype(np.float64) * 32768), -32768, 32767).astype(
        np.int16
    )
    return integers


@dataclass
class OpenedRecording:
    """An open recording; faulty samples raise an :class:`InputError`.

    Attributes:
        where: What to call it in messages.
        file: The open ``soundfile.SoundFile``.
        rate: Sampling rate in Hz.
        format: Its container.
        announced: Samples its header promises; a broken one can announce any number.
    """

    where: str
    file: Any
    rate: int
    format: str
    announced: int

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield (n, channels) float32 to the end.

        Raises:
            InputError: No samples, fewer than announced, NaN, infinity, or an absurd peak.
        """
        count, peak = 0, 0.0
        while len(block := self.file.read(_BLOCK, dtype="float32", always_2d=True)):
            count += len(block)
            if not np.isfinite(block).all():
                raise InputError(f"{self.where}: refused, it holds samples that are NaN or infinite")
            peak = max(peak, float(np.abs(block).max()))
            yield block
        if count == 0:
            raise InputError(f"{self.where}: refused, it has 0 samples")
        if count < self.announced < 1 << 40:
            raise InputError(f"{self.where}: refused, cut short ({count} of {self.announced} samples)")
        if peak > _LARGEST_PEAK:
            raise InputError(f"{self.where}: refused, its peak is {peak:.3g} times full scale")


@contextmanager
def opened_recording(path: Path, where: str) -> Iterator[OpenedRecording]:
    """Open a recording to read it in blocks.

    Args:
        path: The file.
        where: What to call it in messages.

    Raises:
        InputError: It is none, or of a kind that is refused; also while its blocks are read.
    """
    soundfile = optional_module("soundfile", "data")
    if not path.exists():
        raise InputError(f"{where}: no such file")
    if not path.is_file():
        raise InputError(f"{where}: not a regular file")
    if path.stat().st_size == 0:
        raise InputError(f"{where}: refused, the file has 0 bytes")
    if refusal := not_read(path):
        raise InputError(f"{where}: {refusal}")
    if cut := cut_short(path):
        raise InputError(f"{where}: refused, cut short ({cut})")
    try:
        # Bytes: soundfile refuses a name that the locale's encoding cannot spell.
        with soundfile.SoundFile(os.fsencode(path)) as file:
            rate, file_format = int(file.samplerate), str(file.format)
            if not any(file_format in formats for formats in CONTAINERS.values()):
                raise InputError(
                    f"{where}: refused, {file_format} is not read; convert it to one of {' '.join(SUFFIXES)}"
                )
            if rate < MIN_RATE:
                raise InputError(f"{where}: refused, its rate is {rate} Hz; at least {MIN_RATE} Hz is needed")
            yield OpenedRecording(where, file, rate, file_format, int(file.frames))
    except (soundfile.SoundFileError, RuntimeError, EOFError) as error:
        if _announces_nothing(path):
            raise InputError(f"{where}: refused, it has 0 samples") from None
        raise InputError(f"{where}: refused, not readable as audio ({_reason(error)})") from None


def _announces_nothing(path: Path) -> bool:
    # A FLAC header of 42 bytes with nothing behind it is a recording of 0 samples.
    with path.open("rb") as handle:
        return handle.read(4) == b"fLaC" and path.stat().st_size <= 42


def _resample(audio: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    soxr = optional_module("soxr", "data")
    wanted = expected_samples(len(audio), rate)
    resampled: NDArray[np.float64] = soxr.resample(audio, rate, SAMPLE_RATE, quality="HQ")[:wanted]
    return np.pad(resampled, (0, wanted - len(resampled)))


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.rpartition(": ")[2].rstrip(".") or type(error).__name__
