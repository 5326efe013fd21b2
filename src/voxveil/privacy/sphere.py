"""Gaussian noise on L2-normalized vectors, Delta_2 = 2, under zCDP.

Any two points of the L2 unit sphere differ by at most 2 in L2 whatever the dimension, so noise of
standard deviation sigma = sqrt(2 / rho) on every entry makes one vector rho-zCDP (Delta_2^2 / (2
sigma^2) = rho; Bun and Steinke 2016). No pure epsilon holds for it: its loss has a measure of its own.

On private values the noise is the discrete Gaussian of :mod:`voxveil.privacy.discrete_gaussian`, for
which the same bound holds (Canonne, Kamath and Steinke 2020). Its width is fixed at 2^24 steps; the unit
sphere is given the radius R = floor(2^24 sqrt(rho / 2)) steps, truncated toward zero, and its norm
checked in integers. (2 R)^2 / (2 2^48) is at most rho, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.discrete_gaussian import SIGMA_BITS, discrete_gaussian
from voxveil.privacy.grid import GRID_VERSION, SEEDED_VERSION, require_bound
from voxveil.privacy.loss import INFINITE, SEEDED_NOTE, Loss
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.unit import norm2
from voxveil.privacy.vectors import VectorNoise
from voxveil.privacy.zcdp import require_rho

__all__ = ["LARGEST_RHO", "SMALLEST_RHO", "GaussianSphere"]

Array = NDArray[Any]
#: R is at least 2^10 steps from here on: the rho spent is less than the claimed by under 0.2 %.
SMALLEST_RHO = 1e-8
#: Above it the noise on an entry is below a twentieth of the vector: that is no noise.
LARGEST_RHO = 1000.0
#: Share of R that is used, so that rounding can never carry a vector beyond it.
_INSIDE = 1.0 - 2.0**-40


@dataclass(frozen=True)
class GaussianSphere(VectorNoise):
    """Gaussian noise on L2-normalized vectors, rho per vector.

    Attributes:
        rho: In [1e-8, 1000], zCDP.
    """

    rho: float
    name: str = "gaussian_l2"

    def __post_init__(self) -> None:
        """Check rho."""
        require_rho(self.rho, self.name, SMALLEST_RHO, LARGEST_RHO)

    def scale(self) -> float:
        """Return the standard deviation sqrt(2 / rho) of the noise on an entry of a unit vector."""
        return math.sqrt(2.0 / self.rho)

    def radius(self) -> int:
        """Return R, the length of a unit vector in steps of the noise: floor(2^24 sqrt(rho / 2))."""
        return math.isqrt(math.floor(Fraction(self.rho) * 2 ** (2 * SIGMA_BITS - 1)))

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return rho per vector, with L2 sensitivity 2, whatever the shape."""
        version, note = (GRID_VERSION, "") if secret else (SEEDED_VERSION, SEEDED_NOTE)
        return Loss("zcdp", INFINITE, "vector", 2.0, self.name, version, note, self.rho)

    def noisy(self, value: Array, noise: NoiseSource) -> Array:
        """Normalize and add the noise, without the post-processing.

        Args:
            value: (K, M), any scale.
            noise: Where the noise comes from.

        Returns:
            (K, M) float64; on private values multiples of 1 / R.
        """
        unit = norm2(value)
        if not isinstance(noise, SystemNoise):
            return np.asarray(unit + noise.normal(unit.shape, self.scale()))
        radius = self.radius()
        steps = np.trunc(unit * (radius * _INSIDE)).astype(np.int64)
        require_bound(int(np.square(steps).sum(axis=-1).max()) <= radius**2, self.name)
        drawn = discrete_gaussian(steps.size, noise.words).reshape(steps.shape)
        return (steps + drawn).astype(np.float64) / radius
