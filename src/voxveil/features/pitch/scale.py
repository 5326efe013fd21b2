"""The unit scale of F0: 0 is unvoiced, voiced F0 lies in [0.2, 1] on a log scale.

The range is a constant for everybody; nothing is taken from a speaker or a corpus.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError

__all__ = ["F0_MAX", "F0_MIN", "UNIT_MIN", "hz_to_unit", "require_f0", "unit_to_hz"]

#: Hz; voiced F0 outside is clipped.
F0_MIN = 60.0
F0_MAX = 400.0
#: Where F0_MIN lies on the unit scale; F0_MAX lies at 1.
UNIT_MIN = 0.2

Array = NDArray[np.float32]


def hz_to_unit(f0_hz: NDArray[Any]) -> Array:
    """Map F0 onto the unit scale.

    Args:
        f0_hz: (..., K) Hz, 0 where unvoiced.

    Returns:
        (..., K) float32: 0 where unvoiced, else in [0.2, 1].
    """
    f0 = np.asarray(f0_hz, dtype=np.float64)
    position = np.log(np.clip(f0, F0_MIN, F0_MAX) / F0_MIN) / np.log(F0_MAX / F0_MIN)
    unit: Array = np.where(f0 > 0, UNIT_MIN + (1.0 - UNIT_MIN) * position, 0.0).astype(np.float32)
    return unit


def unit_to_hz(unit: NDArray[Any]) -> Array:
    """Map the unit scale back to Hz.

    Args:
        unit: (..., K), any real numbers (a decoder's output need not keep to the scale).

    Returns:
        (..., K) float32 Hz: 0 below half of :data:`UNIT_MIN`, else in [60, 400].
    """
    value = np.asarray(unit, dtype=np.float64)
    position = (np.clip(value, UNIT_MIN, 1.0) - UNIT_MIN) / (1.0 - UNIT_MIN)
    hz: Array = np.where(
        value >= UNIT_MIN / 2, F0_MIN * np.exp(position * np.log(F0_MAX / F0_MIN)), 0.0
    ).astype(np.float32)
    return hz


def require_f0(f0_hz: NDArray[Any], name: str = "F0") -> NDArray[np.float64]:
    """Return F0 as float64 if it is (K,) with K >= 1, finite and not negative.

    Raises:
        InputError: Otherwise, naming ``name``.
    """
    f0 = np.asarray(f0_hz, dtype=np.float64)
    if f0.ndim != 1 or not f0.size:
        raise InputError(f"{name}: must be one value per frame, at least one; got shape {f0.shape}")
    if not np.isfinite(f0).all() or f0.min() < 0:
        raise InputError(
            f"{name}: must be finite Hz, 0 where unvoiced; got a negative, NaN or infinite value"
        )
    return f0
