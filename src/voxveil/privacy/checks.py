"""Input checks shared by all mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import PrivacyError

__all__ = ["require_epsilon", "require_finite"]


def require_epsilon(epsilon: float, name: str) -> None:
    """Raise an error if epsilon is not a finite number above 0."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise PrivacyError(f"{name}: epsilon must be a number, got {epsilon!r}")
    if not math.isfinite(epsilon) or epsilon <= 0:
        raise PrivacyError(f"{name}: epsilon must be above 0 and finite, got {epsilon}")


def require_finite(value: NDArray[Any], name: str) -> None:
    """Raise an error for NaN and infinity before any noise is drawn."""
    if not np.isfinite(value).all():
        raise PrivacyError(f"{name}: the value has NaN or infinite entries; nothing was released")
