"""Laplace noise on vectors of the L1 ball, Delta_1 = 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.checks import require_epsilon, require_finite
from voxveil.privacy.discrete import to_grid
from voxveil.privacy.grid import add_on_grid, laplace_loss, require_bound
from voxveil.privacy.invariants import UNPADDED
from voxveil.privacy.loss import Loss, Unit
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal
from voxveil.runtime.errors import PrivacyError

__all__ = ["BALL_BITS", "BallNoise", "LaplaceBall"]

Array = NDArray[Any]
#: k of the grid spacing 2^-k: far below the noise, and coarse enough that integers never overflow.
BALL_BITS = 20


@dataclass(frozen=True)
class BallNoise:
    """Base class of noise on the L1 ball of radius 1: scale 2 / epsilon, exact on the grid.

    Attributes:
        epsilon: Above 0, finite.
        name: Of the mechanism.
    """

    epsilon: float
    name: str = "laplace_ball"
    unit: ClassVar[Unit] = "utterance"

    def __post_init__(self) -> None:
        """Check epsilon."""
        require_epsilon(self.epsilon, self.name)

    def scale(self) -> float:
        """Return 2 / epsilon."""
        return 2.0 / self.epsilon

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return epsilon per unit, with sensitivity 2, whatever the shape."""
        return laplace_loss(self.epsilon, self.unit, 2.0, self.name, secret)

    def noisy_inside(self, inside: Array, noise: NoiseSource) -> Array:
        """Add the noise to vectors (..., n) of L1 norm at most 1."""
        if isinstance(noise, SystemNoise):
            # Truncation moves toward zero, so each vector stays in the L1 ball of 2^k steps and any two
            # differ by at most twice that.
            steps = to_grid(inside, BALL_BITS)
            require_bound(int(np.abs(steps).sum(axis=-1).max()) <= 2**BALL_BITS, self.name)
            return add_on_grid(steps, self.epsilon, 2 << BALL_BITS, BALL_BITS, noise)
        return inside + noise.laplace(inside.shape, self.scale())


@dataclass(frozen=True)
class LaplaceBall(BallNoise):
    """A vector, drawn back onto the L1 ball of radius 1 where it leaves it, plus Lap(2 / epsilon).

    Any two points of the ball differ by at most 2 in L1, so epsilon bounds the utterance whatever
    its length and the number of coefficients.

    Attributes:
        invariants: Of its claim. The coefficients assume none, but a system whose output is as long as its
            input does; one that gives output of another length passes an empty set.
    """

    invariants: frozenset[str] = UNPADDED

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return epsilon per utterance, with sensitivity 2, whatever the shape."""
        return replace(super().loss_for(shape, secret=secret), invariants=self.invariants)

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Return the vector with noise.

        Args:
            value: (n,) finite; of L1 norm above 1 it is scaled down to 1.
            noise: Where the noise comes from.
        """
        if value.ndim != 1 or not value.size:
            raise PrivacyError(f"{self.name}: needs one vector of coefficients, got shape {value.shape}")
        require_finite(value, self.name)
        inside = np.asarray(value, np.float64) / max(1.0, float(np.abs(value).sum()))
        return self.noisy_inside(inside, noise)

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release the coefficients of one utterance."""
        noisy = self.perturb(value, noise)
        return seal(noisy, self.loss_for(value.shape, secret=isinstance(noise, SystemNoise)))
