"""The mechanism interface, the Laplace mechanisms, and their construction from parameters.

* :class:`LaplaceCube`: h in [0,1]^(C x K) plus Laplace noise of scale C K / epsilon on every
  entry. Any two h differ by at most C K in L1, so epsilon bounds the whole utterance.
* :class:`LaplaceSimplex`: norm1(norm1(b) + Lap(2 / epsilon)) per vector, norm1(c) = c / |c|_1.
  Any two points of the L1 sphere differ by at most 2, so epsilon bounds one vector.
* :class:`~voxveil.privacy.ball.LaplaceBall`: a few coefficients of an utterance on the L1 ball.
* :class:`~voxveil.privacy.response.RandomizedResponse`: one of k codes per vector, told truly or not.
* :class:`~voxveil.privacy.subset.SubsetSelection`: a set of d codes per vector, with the true one or not.
* :class:`~voxveil.privacy.sphere.GaussianSphere`: Gaussian noise on L2-normalized vectors, under zCDP.
* :class:`Identity`: no noise, epsilon infinite, said so.

The scale is sensitivity / epsilon and depends on nothing else: no batch size, order, worker
or train/eval mode. ("Differentially private speaker anonymization", Shamsabadi et al. 2023.)

With :class:`SystemNoise` (private values) the value is truncated toward zero onto a grid of
spacing 2^-k, its bound is checked in integers, and exact discrete Laplace noise is added: version
"2", epsilon-DP with no floating-point reservation. With :class:`PublicNoise` (training, the
attacker's public speech) the noise is seeded floating-point Laplace: version "1", no privacy claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxveil.config.features import ContentVariant, PitchVariant
from voxveil.privacy.ball import BALL_BITS, BallNoise, LaplaceBall
from voxveil.privacy.checks import require_epsilon, require_finite
from voxveil.privacy.discrete import to_grid
from voxveil.privacy.grid import add_on_grid, laplace_loss, require_bound
from voxveil.privacy.loss import INFINITE, Loss, Unit
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal
from voxveil.privacy.response import RandomizedResponse
from voxveil.privacy.sphere import GaussianSphere
from voxveil.privacy.subset import SubsetSelection
from voxveil.privacy.unit import norm1
from voxveil.privacy.vectors import VectorNoise
from voxveil.runtime.errors import PrivacyError

__all__ = [
    "ContentMechanism",
    "Identity",
    "LaplaceCube",
    "LaplaceSimplex",
    "Mechanism",
    "PitchMechanism",
    "content_mechanism",
    "described_content",
    "pitch_mechanism",
]

Array = NDArray[Any]
#: k of the grid spacing 2^-k: far below the noise, and coarse enough that integers never overflow.
CUBE_BITS = 16
SIMPLEX_BITS = BALL_BITS


class Mechanism(Protocol):
    """Turns a private value into a released one."""

    name: str

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return the privacy loss of releasing a value of this shape, independent of the value.

        Args:
            shape: Shape of the private value.
            secret: The noise will come from the operating system (a release), not from a seed.
        """
        ...

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release ``value`` with fresh noise."""
        ...

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Return a simulated release, for training on public speech."""
        ...


@dataclass(frozen=True)
class Identity:
    """No noise: the value as it is, with an infinite loss per utterance or vector."""

    unit: Unit
    name: str = "identity"

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return the infinite loss."""
        return Loss("pure", INFINITE, self.unit, None, self.name, "1", "no noise: nothing is promised")

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Return ``value``."""
        return value

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release ``value`` unchanged."""
        require_finite(value, self.name)
        return seal(value, self.loss_for(value.shape))


@dataclass(frozen=True)
class LaplaceCube:
    """Laplace noise on h in [0,1]^(C x K), epsilon per utterance, Delta_1 = C K.

    Attributes:
        epsilon: Above 0, finite.
    """

    epsilon: float
    name: str = "laplace_cube"

    def __post_init__(self) -> None:
        """Check epsilon."""
        require_epsilon(self.epsilon, self.name)

    def scale(self, channels: int, frames: int) -> float:
        """Return C K / epsilon."""
        return channels * frames / self.epsilon

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return epsilon per utterance, with sensitivity C K, for a value of shape (C, K)."""
        channels, frames = shape
        return laplace_loss(self.epsilon, "utterance", float(channels * frames), self.name, secret)

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Add the noise.

        Args:
            value: (..., C, K), every entry in [0, 1]. Leading axes are utterances, each with noise
                of its own and the scale it would have alone.
            noise: Where the noise comes from.
        """
        if value.ndim < 2 or not value.size:
            raise PrivacyError(f"{self.name}: needs a (channels, frames) array, got shape {value.shape}")
        require_finite(value, self.name)
        if value.min() < 0 or value.max() > 1:
            raise PrivacyError(f"{self.name}: entries must lie in [0, 1], got [{value.min()}, {value.max()}]")
        channels, frames = value.shape[-2:]
        if isinstance(noise, SystemNoise):
            # Every entry lies in {0..2^k}, so any two differ by at most C K 2^k steps in all.
            steps = to_grid(np.asarray(value, np.float64), CUBE_BITS)
            require_bound(int(steps.min()) >= 0 and int(steps.max()) <= 2**CUBE_BITS, self.name)
            return add_on_grid(steps, self.epsilon, (channels * frames) << CUBE_BITS, CUBE_BITS, noise)
        return value + noise.laplace(value.shape, self.scale(channels, frames))

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release h (C, K) of one utterance."""
        if value.ndim != 2:
            raise PrivacyError(f"{self.name}: needs a (channels, frames) array, got shape {value.shape}")
        noisy = self.perturb(value, noise)
        return seal(noisy, self.loss_for(value.shape, secret=isinstance(noise, SystemNoise)))


@dataclass(frozen=True)
class LaplaceSimplex(BallNoise, VectorNoise):
    """Laplace noise on L1-normalized vectors, epsilon per vector, Delta_1 = 2."""

    name: str = "laplace_l1"
    unit: ClassVar[Unit] = "vector"

    def noisy(self, value: Array, noise: NoiseSource) -> Array:
        """Normalize and add the noise, without the post-processing.

        Args:
            value: (K, M), any scale.
            noise: Where the noise comes from.
        """
        return self.noisy_inside(norm1(value), noise)


#: What may release pitch.
PitchMechanism: TypeAlias = Identity | LaplaceCube | LaplaceBall


def pitch_mechanism(variant: PitchVariant) -> PitchMechanism:
    """Return the mechanism of a pitch variant."""
    if variant.mechanism == "identity":
        return Identity("utterance")
    # The autoencoder's cube and the plain F0 go through the same noise; they differ in C.
    return LaplaceBall(variant.epsilon) if variant.mechanism == "contour" else LaplaceCube(variant.epsilon)


#: What may release content.
ContentMechanism: TypeAlias = (
    Identity | LaplaceSimplex | RandomizedResponse | SubsetSelection | GaussianSphere
)


def content_mechanism(variant: ContentVariant) -> ContentMechanism:
    """Return the mechanism of a content variant."""
    if variant.mechanism == "identity":
        return Identity("vector")
    if variant.mechanism == "randomized_response":
        return RandomizedResponse(variant.epsilon)
    if variant.mechanism == "subset_selection":
        return SubsetSelection(variant.epsilon)
    if variant.mechanism == "gaussian":
        return GaussianSphere(variant.rho)
    return LaplaceSimplex(variant.epsilon)


def described_content(content: Mapping[str, Any]) -> ContentMechanism:
    """Return the mechanism that a content model's ``model.json`` names.

    Raises:
        KeyError: It names none.
    """
    rho = content.get("rho", 0.0)
    return content_mechanism(ContentVariant(content["mechanism"], content["epsilon"], rho=rho))
