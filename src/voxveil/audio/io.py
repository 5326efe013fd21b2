"""Audio in and out: any recording to 16 kHz mono by stated rules, and 16-bit FLAC bytes.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.containers import CONTAINERS, SUFFIXES, cut_short, not_read
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.errors import IncompleteInputError, InputError, MissingExtraError

__all__ = [
    "MIN_RATE",
    "SHORT_SAMPLES",
    "Recording",
    "decode",
    "encode_flac",
    "expected_samples",
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
_DC_LIMIT = 0.01
_QUIET_PEAK = 1e-3
_FULL_SCALE = 0.999
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
        samples, rate, file_format = _read_samples(path, where)
    except OSError as error:
        raise InputError(f"{where}: refused, cannot be read ({error.strerror or error})") from None
    flags = set()
    if file_format not in CONTAINERS.get(path.suffix.lower(), {file_format}):
        flags.add("mislabelled")
    if samples.shape[1] > 1:
        flags.add("downmixed")
    audio = samples.mean(axis=1, dtype=np.float64)
    if np.mean(np.abs(samples) >= _FULL_SCALE) > _CLIPPED_SHARE:
        flags.add("clipped")
    if np.ptp(audio) < _STEP_16_BIT:
        flags.add("silent")
    offset = float(audio.mean())
    if abs(offset) > _DC_LIMIT or "silent" in flags:
        audio = audio - offset
    if abs(offset) > _DC_LIMIT:
        flags.add("dc_offset")
    if rate != SAMPLE_RATE:
        flags.add("resampled")
        audio = _resample(audio, rate)
    if rate < SAMPLE_RATE:
        flags.add("band_limited")
    if len(audio) < SHORT_SAMPLES:
        flags.add("short")
    if "silent" not in flags and np.abs(audio).max() < _QUIET_PEAK:
        flags.add("quiet")
    return Recording(audio.astype(np.float32), rate, len(samples), tuple(sorted(flags)))


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
    soundfile = _soundfile()
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
    """Encode as 16 kHz mono 16-bit FLAC.

    Args:
        audio: (n,) samples, n >= 1; full scale is 1. What lies beyond is clipped, never wrapped.
        name: Utterance id, for messages.

    Returns:
        The FLAC bytes and the number of clipped samples.

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
    _soundfile().write(buffer, to_int16(audio), SAMPLE_RATE, format="FLAC", subtype="PCM_16")
    return buffer.getvalue(), clipped


def to_int16(audio: NDArray[np.floating]) -> NDArray[np.int16]:
    """Return finite samples, full scale 1, as 16-bit integers; what lies beyond is clipped."""
    integers: NDArray[np.int16] = np.clip(np.rint(audio.astype(np.float64) * 32768), -32768, 32767).astype(
        np.int16
    )
    return integers


def _read_samples(path: Path, where: str) -> tuple[NDArray[np.float32], int, str]:
    soundfile = _soundfile()
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
        # Blocks, since a broken header can announce any number of samples.
        # Bytes: soundfile refuses a name that the locale's encoding cannot spell.
        with soundfile.SoundFile(os.fsencode(path)) as file:
            rate, file_format, announced = int(file.samplerate), str(file.format), int(file.frames)
            if not any(file_format in formats for formats in CONTAINERS.values()):
                raise InputError(
                    f"{where}: refused, {file_format} is not read; convert it to one of {' '.join(SUFFIXES)}"
                )
            if rate < MIN_RATE:
                raise InputError(f"{where}: refused, its rate is {rate} Hz; at least {MIN_RATE} Hz is needed")
            blocks = []
            while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
                blocks.append(block)
    except (soundfile.SoundFileError, RuntimeError, EOFError) as error:
        if _announces_nothing(path):
            raise InputError(f"{where}: refused, it has 0 samples") from None
        raise InputError(f"{where}: refused, not readable as audio ({_reason(error)})") from None
    samples = np.concatenate(blocks) if blocks else np.zeros((0, 1), np.float32)
    if len(samples) == 0:
        raise InputError(f"{where}: refused, it has 0 samples")
    if len(samples) < announced < 1 << 40:
        raise InputError(f"{where}: refused, cut short ({len(samples)} of {announced} samples)")
    if not np.isfinite(samples).all():
        raise InputError(f"{where}: refused, it holds samples that are NaN or infinite")
    peak = float(np.abs(samples).max())
    if peak > _LARGEST_PEAK:
        raise InputError(f"{where}: refused, its peak is {peak:.3g} times full scale")
    return samples, rate, file_format


def _announces_nothing(path: Path) -> bool:
    # A FLAC header of 42 bytes with nothing behind it is a recording of 0 samples.
    with path.open("rb") as handle:
        return handle.read(4) == b"fLaC" and path.stat().st_size <= 42


def _resample(audio: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    try:
        import soxr
    except ImportError:
        raise MissingExtraError("soxr", "data") from None
    wanted = expected_samples(len(audio), rate)
    resampled: NDArray[np.float64] = soxr.resample(audio, rate, SAMPLE_RATE, quality="HQ")[:wanted]
    return np.pad(resampled, (0, wanted - len(resampled)))


def _soundfile() -> Any:
    try:
        import soundfile
    except ImportError:
        raise MissingExtraError("soundfile", "data") from None
    return soundfile


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.rpartition(": ")[2].rstrip(".") or type(error).__name__
