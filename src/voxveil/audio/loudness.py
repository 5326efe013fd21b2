"""Loudness: every output at one level, whatever the input's."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.errors import MissingExtraError

__all__ = ["to_loudness"]

#: Block of ITU-R BS.1770-4 in samples; shorter clips are repeated until they fill one.
_BLOCK = int(0.4 * SAMPLE_RATE)


def to_loudness(audio: NDArray[np.float32], lufs: float) -> NDArray[np.float32]:
    """Scale to an integrated loudness (ITU-R BS.1770-4).

    The level of the input is information about the speaker and the recording; here it is
    replaced by a constant, so the result does not depend on the input's gain.

    Args:
        audio: (n,) finite samples at 16 kHz. A clip under 0.4 s is measured as if repeated.
        lufs: Wanted loudness in LUFS.

    Returns:
        (n,) float32. Silence (no sample that differs from zero) stays silence. Peaks may pass
        full scale; :func:`voxveil.audio.io.encode_flac` clips and counts them.
    """
    peak = float(np.abs(audio).max(initial=0.0))
    if peak == 0.0:
        return np.zeros_like(audio, dtype=np.float32)
    # At unit peak first: the gate of BS.1770 at -70 LUFS is absolute, and would see the input's gain.
    unit = audio.astype(np.float64) / peak
    measured = unit if len(unit) >= _BLOCK else np.resize(unit, _BLOCK)
    loudness = _integrated_loudness(measured)
    result: NDArray[np.float32] = (unit * 10.0 ** ((lufs - loudness) / 20.0)).astype(np.float32)
    return result


def _integrated_loudness(audio: NDArray[np.float64]) -> float:
    try:
        import pyloudnorm
    except ImportError:
        raise MissingExtraError("pyloudnorm", "data") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loudness = float(pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(audio))
    if np.isfinite(loudness):
        return loudness
    # Everything lies under the gate (a lone click in silence): the ungated mean square instead.
    return float(-0.691 + 10.0 * np.log10(np.mean(audio**2)))
