"""Length check of clips before embedding, and repetition of short ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.runtime.errors import InputError

__all__ = ["MINIMUM_SAMPLES", "at_least_minimum", "tiled"]

#: The shortest clip an encoder sees (0.5 s at 16 kHz); a shorter one is repeated up to it.
MINIMUM_SAMPLES = SAMPLE_RATE // 2


def at_least_minimum(audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Check a clip and repeat it up to :data:`MINIMUM_SAMPLES` where it is shorter.

    Args:
        audio: (n,) samples, n >= 1, finite.
        name: What to call the clip in an error.

    Raises:
        InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
    """
    if audio.ndim != 1:
        raise InputError(f"{name}: audio has shape {audio.shape}; a mono clip is (samples,)")
    if len(audio) == 0:
        raise InputError(f"{name}: no samples; a clip needs at least one")
    if not np.isfinite(audio).all():
        raise InputError(f"{name}: audio holds NaN or infinity")
    return tiled(audio.astype(np.float32, copy=False), MINIMUM_SAMPLES)


def tiled(audio: NDArray[np.float32], samples: int) -> NDArray[np.float32]:
    """Repeat ``audio`` (n,), n >= 1, up to at least ``samples``; a longer one is returned as it is."""
    if len(audio) >= samples:
        return np.ascontiguousarray(audio)
    return np.tile(audio, -(-samples // len(audio)))[:samples]
