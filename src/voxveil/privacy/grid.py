"""Exact noise on a grid, shared by the Laplace mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.discrete import discrete_laplace, rate_for
from voxveil.privacy.loss import SEEDED_NOTE, Loss, Unit
from voxveil.privacy.noise import SystemNoise
from voxveil.runtime.errors import PrivacyError

__all__ = ["GRID_VERSION", "SEEDED_VERSION", "add_on_grid", "laplace_loss", "require_bound"]

SEEDED_VERSION = "1"
GRID_VERSION = "2"


def laplace_loss(epsilon: float, unit: Unit, sensitivity: float, name: str, secret: bool) -> Loss:
    """Return the loss of Laplace noise; seeded noise has another version and promises nothing."""
    version, note = (GRID_VERSION, "") if secret else (SEEDED_VERSION, SEEDED_NOTE)
    return Loss("pure", epsilon, unit, sensitivity, name, version, note)


def add_on_grid(
    steps: NDArray[np.int64], epsilon: float, sensitivity: int, bits: int, noise: SystemNoise
) -> NDArray[Any]:
    """Add exact noise to integers and return multiples of 2^-bits; sensitivity in steps."""
    drawn = discrete_laplace(steps.size, rate_for(epsilon, sensitivity), noise.words)
    return np.ldexp((steps + drawn.reshape(steps.shape)).astype(np.float64), -bits)


def require_bound(holds: bool, name: str) -> None:
    """Raise an error if a value exceeds the bound behind its sensitivity."""
    if not holds:
        raise PrivacyError(f"{name}: the value exceeds its sensitivity bound; nothing was released")
