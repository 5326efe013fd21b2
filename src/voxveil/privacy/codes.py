"""Base class of mechanisms on codes; the code of a vector is the index of its largest entry.

A code out of k goes in, a row of k entries comes out; epsilon bounds one vector, whatever k. The
randomness is 64-bit words of which each outcome has a whole number, so nothing that is released
depends on the rounding of a floating-point number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.checks import require_epsilon, require_finite
from voxveil.privacy.loss import SEEDED_NOTE, Loss
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal
from voxveil.runtime.errors import PrivacyError

__all__ = ["LARGEST_EPSILON", "SMALLEST_EPSILON", "CodeMechanism"]

Array = NDArray[Any]
#: Above this epsilon another code would come up less than once in 2^46 vectors: that is no noise.
LARGEST_EPSILON = 32.0
#: Below it a whole number of 2^64 words no longer tells e^epsilon from 1.
SMALLEST_EPSILON = 1e-6


@dataclass(frozen=True)
class CodeMechanism(ABC):
    """A mechanism on codes, epsilon per vector.

    Attributes:
        epsilon: In [1e-6, 32].
        name: Of the mechanism.
    """

    epsilon: float
    name: str = ""

    def __post_init__(self) -> None:
        """Check epsilon."""
        require_epsilon(self.epsilon, self.name)
        if self.epsilon > LARGEST_EPSILON:
            raise PrivacyError(
                f"{self.name}: epsilon must be at most {LARGEST_EPSILON:g} per vector, got {self.epsilon:g};"
                " above that it is no noise, which is spelt 'identity'"
            )
        if self.epsilon < SMALLEST_EPSILON:
            raise PrivacyError(
                f"{self.name}: epsilon must be at least {SMALLEST_EPSILON:g}, got {self.epsilon:g}"
            )

    @abstractmethod
    def randomize(self, codes: NDArray[np.int64], count: int, noise: NoiseSource) -> Array:
        """Randomize (K,) codes out of ``count``: (K, count), non-negative, rows of sum 1."""

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return epsilon per vector; the L1 distance of two codes as one-hot vectors is 2."""
        return Loss("pure", self.epsilon, "vector", 2.0, self.name, "1", "" if secret else SEEDED_NOTE)

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Return the randomized code of each vector.

        Args:
            value: (K, k) scores, k at least 2; the first of equal largest entries is the code.
            noise: Where the words come from.

        Returns:
            (K, k) float64, non-negative, each row of sum 1.
        """
        if value.ndim != 2 or not len(value) or value.shape[1] < 2:
            raise PrivacyError(f"{self.name}: needs (vectors, codes) with 2 codes or more, got {value.shape}")
        require_finite(value, self.name)
        return self.randomize(np.asarray(value).argmax(axis=1), value.shape[1], noise)

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release the K codes of one utterance."""
        released = self.perturb(value, noise)
        return seal(released, self.loss_for(value.shape, secret=isinstance(noise, SystemNoise)))
