"""YAAPT's frames and constants, the published values unless a comment says otherwise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE

__all__ = ["F0_MAX", "F0_MIN", "FILTER_ORDER", "FRAME", "band_passed", "framed", "yaapt_frames"]

#: Lowest F0 searched, in Hz.
F0_MIN = 60.0
#: Highest F0 searched, in Hz.
F0_MAX = 400.0
#: Samples of a frame, 35 ms.
FRAME = int(0.035 * SAMPLE_RATE)
FILTER_ORDER = 150
_BAND = (50.0, 1500.0)

Array = NDArray[np.float64]


def yaapt_frames(samples: int) -> int:
    """Return how many frames YAAPT sees in ``samples`` samples: frame k starts at sample 160 k."""
    return max(0, -(-(samples - 2 * (FRAME // 2)) // HOP))


def framed(signal: Array, frames: int, width: int) -> Array:
    """Return a view (frames, width) of the frames, on the signal with zeros appended as needed."""
    missing = (frames - 1) * HOP + width - len(signal)
    padded = np.pad(signal, (0, max(0, missing)))
    return np.lib.stride_tricks.sliding_window_view(padded, width)[::HOP][:frames]


@lru_cache(maxsize=1)
def _taps() -> Array:
    from scipy.signal import firwin

    return np.asarray(firwin(FILTER_ORDER + 1, [2 * f / SAMPLE_RATE for f in _BAND], pass_zero=False))


def band_passed(samples: Array) -> Array:
    """Return (n,) samples through YAAPT's band-pass, which delays them by half its order."""
    from scipy.signal import lfilter

    return np.asarray(lfilter(_taps(), 1.0, samples))
