"""k-ary randomised response: a code is told as it is, or another one with equal probability each.

Warner, "Randomized response", 1965; Kairouz, Bonawitz and Ramage, "Discrete distribution estimation
under local privacy", ICML 2016. A code out of k is kept with probability e^epsilon / (e^epsilon + k - 1),
so any two codes give any output with probabilities whose ratio is at most e^epsilon.

It draws one 64-bit word per vector, and counts words: every other code gets T = floor(2^64 /
(e^epsilon + k - 1)) + 1 of the 2^64, the code itself the rest. Rounding T up lowers the ratio, so the
epsilon spent is at most the epsilon claimed, exactly, with no floating point in what is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.errors import PrivacyError
from voxveil.privacy.checks import require_epsilon, require_finite
from voxveil.privacy.loss import SEEDED_NOTE, Loss
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal

__all__ = ["LARGEST_EPSILON", "RandomizedResponse", "kept_probability", "words_per_other"]

Array = NDArray[Any]
_WORDS = 2**64
#: Above this epsilon another code would come up less than once in 2^46 vectors: that is no noise.
LARGEST_EPSILON = 32.0


@dataclass(frozen=True)
class RandomizedResponse:
    """The largest entry of each vector as a code, randomised; epsilon per vector.

    Attributes:
        epsilon: Above 0, at most 32.
    """

    epsilon: float
    name: str = "randomized_response"

    def __post_init__(self) -> None:
        """Check epsilon."""
        require_epsilon(self.epsilon, self.name)
        if self.epsilon > LARGEST_EPSILON:
            raise PrivacyError(
                f"{self.name}: epsilon must be at most {LARGEST_EPSILON:g} per vector, got {self.epsilon:g};"
                " above that it is no noise, which is spelt 'identity'"
            )

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return epsilon per vector; the L1 distance of two codes as one-hot vectors is 2."""
        return Loss("pure", self.epsilon, "vector", 2.0, self.name, "1", "" if secret else SEEDED_NOTE)

    def perturb(self, value: Array, noise: NoiseSource) -> Array:
        """Return randomised codes as one-hot vectors.

        Args:
            value: (K, k) scores, k at least 2; the first of equal largest entries is the code.
            noise: Where the words come from.

        Returns:
            (K, k) float64 of 0 and 1.
        """
        if value.ndim != 2 or not len(value) or value.shape[1] < 2:
            raise PrivacyError(f"{self.name}: needs (vectors, codes) with 2 codes or more, got {value.shape}")
        require_finite(value, self.name)
        codes = np.asarray(value).argmax(axis=1)
        told = respond(codes, value.shape[1], self.epsilon, noise.words(len(codes)))
        one_hot = np.zeros(value.shape, np.float64)
        one_hot[np.arange(len(told)), told] = 1.0
        return one_hot

    def release(self, value: Array, noise: NoiseSource) -> Released[Array]:
        """Release the K codes of one utterance."""
        told = self.perturb(value, noise)
        return seal(told, self.loss_for(value.shape, secret=isinstance(noise, SystemNoise)))


def respond(
    codes: NDArray[np.int64], count: int, epsilon: float, words: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the codes that are told.

    Args:
        codes: (K,) true codes, 0 to count - 1.
        count: k.
        epsilon: Per code.
        words: (K,) uniform 64-bit words, one for each code.
    """
    share = words_per_other(epsilon, count)
    # Other codes are counted from the true one on, so that each has exactly ``share`` words.
    step = (words // np.uint64(share)).astype(np.int64) + 1
    return np.where(step < count, (codes + step) % count, codes)


def words_per_other(epsilon: float, count: int) -> int:
    """Return T, of 2^64 words how many tell any one other code, rounded up.

    Args:
        epsilon: Above 0.
        count: k, at least 2.
    """
    with localcontext() as context:
        context.prec = 60
        return math.floor(Decimal(_WORDS) / (Decimal(epsilon).exp() + count - 1)) + 1


def kept_probability(epsilon: float, count: int) -> float:
    """Return the probability e^epsilon / (e^epsilon + k - 1) of telling the code itself."""
    return 1.0 / (1.0 + (count - 1) * math.exp(-epsilon))
