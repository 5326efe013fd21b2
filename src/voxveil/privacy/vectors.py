"""Input check, L1 normalization and sealing shared by the mechanisms on content vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from voxveil.privacy.checks import require_finite
from voxveil.privacy.loss import Loss
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal
from voxveil.privacy.unit import norm1
from voxveil.runtime.errors import PrivacyError

__all__ = ["VectorNoise"]

Array = NDArray[Any]


class VectorNoise(ABC):
    """A mechanism that adds noise to each of the K vectors of an utterance.

    Attributes:
        name: Of the mechanism.
    """

    name: str

    @abstractmethod
    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return the loss of one vector, whatever the shape."""

    @abstractmethod
    def noisy(self, value: Array, noise: NoiseSource) -> Array:
        """Normalize and add the noise, without the post-processing.

        Args:
            value: (K, M), any scale.
            noise: Where the noise comes from.
        """

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Normalize, add the noise, and scale to L1 norm 1 as all content vectors are.

        Args:
            value: (K, M) bottleneck vectors, any scale.
            noise: Where the noise comes from.
        """
        if value.ndim != 2 or not value.size:
            raise PrivacyError(f"{self.name}: needs a (vectors, size) array, got shape {value.shape}")
        require_finite(value, self.name)
        return norm1(self.noisy(value, noise))

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release the K vectors of one utterance."""
        released = self.perturb(value, noise)
        return seal(released, self.loss_for(value.shape, secret=isinstance(noise, SystemNoise)))
