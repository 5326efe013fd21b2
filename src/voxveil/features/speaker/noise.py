"""Additive noise for training crops, mixed in the log-mel domain.

Powers of independent signals add on average, so a mixture's mel magnitudes are the root of the sum of
squares. It leaves out the phase between the two; as an augmentation it only has to be plausible.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import MEL_BANDS

__all__ = ["mixed", "stationary"]


def mixed(clean: NDArray[np.float32], other: NDArray[np.float32], snr: float) -> NDArray[np.float32]:
    """Mix two log-mel crops.

    Args:
        clean: (frames, 80) natural-log mel magnitudes.
        other: (frames, 80) of what is mixed in.
        snr: Ratio of mean powers in dB.

    Returns:
        (frames, 80) natural-log mel magnitudes.
    """
    signal, noise = np.exp(2.0 * clean), np.exp(2.0 * other)
    gain = float(signal.mean()) / max(float(noise.mean()), 1e-30) / 10.0 ** (snr / 10.0)
    result: NDArray[np.float32] = (0.5 * np.log(signal + np.float32(gain) * noise)).astype(np.float32)
    return result


def stationary(rng: np.random.Generator, frames: int) -> NDArray[np.float32]:
    """Return (frames, 80) log-mel of noise with a random smooth spectrum and white fluctuation."""
    places = np.linspace(-1.0, 1.0, MEL_BANDS)
    slope, bend = rng.normal(0.0, 1.0, 2)
    shape = slope * places + bend * places**2
    noise: NDArray[np.float32] = (shape + rng.normal(0.0, 0.3, (frames, MEL_BANDS))).astype(np.float32)
    return noise
