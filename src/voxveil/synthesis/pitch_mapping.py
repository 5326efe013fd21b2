"""Mapping of released pitch to the vocoder's F0 in Hz on every frame.

Everything here post-processes released values; the statistics are those of the released
sequence itself, never of the private F0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.features.pitch.scale import F0_MAX, F0_MIN, unit_to_hz
from voxveil.features.speaker.targets import Target
from voxveil.synthesis.source import fill_unvoiced

__all__ = ["convert_pitch", "smooth", "vocoder_f0"]

#: Frames (10 ms) of the window that smooths a noisy released sequence.
SMOOTHING = 15
#: Smallest standard deviation of ln F0 that is scaled up to the target's.
_FLAT = 1e-3

Array = NDArray[np.float32]


def convert_pitch(f0: Array, target: Target) -> Array:
    """Move F0 to the target's mean and standard deviation on the log scale.

    Args:
        f0: (K,) Hz, 0 where unvoiced.
        target: Whose F0 statistics to take.

    Returns:
        (K,) Hz in [60, 400], 0 where ``f0`` is.
    """
    converted = np.zeros_like(f0)
    voiced = f0 > 0
    if not voiced.any():
        return converted
    log_f0 = np.log(f0[voiced].astype(np.float64))
    sd = float(log_f0.std())
    scale = target.log_f0_sd / sd if sd > _FLAT else 0.0
    moved = np.exp((log_f0 - log_f0.mean()) * scale + target.log_f0_mean)
    converted[voiced] = np.clip(moved, F0_MIN, F0_MAX)
    return converted


def smooth(f0: Array) -> Array:
    """Return ln-F0 averaged by a Hann window over voiced frames; 0 stays 0.

    A sequence released with noise jumps from frame to frame as no voice does.
    """
    voiced = (f0 > 0).astype(np.float64)
    window = np.hanning(SMOOTHING + 2)[1:-1]
    weight = _convolve(voiced, window)
    log_f0 = np.log(np.where(f0 > 0, f0, 1.0).astype(np.float64))
    average = _convolve(log_f0 * voiced, window) / np.where(weight > 0, weight, 1.0)
    return np.where(f0 > 0, np.exp(average), 0.0).astype(np.float32)


def vocoder_f0(unit: Array, target: Target, *, convert: bool, noisy: bool) -> tuple[Array, Array]:
    """Return F0 for the vocoder, and the same with its unvoiced frames for the acoustic model.

    Args:
        unit: (K,) released pitch on the unit scale.
        target: The voice to speak with.
        convert: Move F0 to the target's statistics (pitch conversion).
        noisy: The pitch was released with noise: it is smoothed and always moved to the target's
            statistics, since its own mean and spread are mostly noise.

    Returns:
        (F0 in Hz (K,), positive on every frame; the same (K,) with 0 where released as unvoiced).
    """
    f0 = unit_to_hz(unit)
    if noisy:
        f0 = smooth(f0)
    if convert or noisy:
        f0 = convert_pitch(f0, target)
    default = float(np.clip(np.exp(target.log_f0_mean), F0_MIN, F0_MAX))
    return fill_unvoiced(f0, default), f0


def _convolve(values: NDArray[np.float64], window: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.convolve(values, window)[len(window) // 2 :][: len(values)]
