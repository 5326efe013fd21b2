"""k-ary randomized response: releases the true code, or one of the others with equal probability.

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

from voxveil.privacy.codes import CodeMechanism
from voxveil.privacy.noise import NoiseSource

__all__ = ["RandomizedResponse", "kept_probability", "respond", "words_per_other"]

_WORDS = 2**64


@dataclass(frozen=True)
class RandomizedResponse(CodeMechanism):
    """The code of each vector, or another one, as a one-hot vector; epsilon per vector."""

    name: str = "randomized_response"

    def randomize(self, codes: NDArray[np.int64], count: int, noise: NoiseSource) -> NDArray[Any]:
        """Return randomized codes as one-hot vectors (K, count)."""
        responses = respond(codes, count, self.epsilon, noise.words(len(codes)))
        one_hot = np.zeros((len(codes), count), np.float64)
        one_hot[np.arange(len(responses)), responses] = 1.0
        return one_hot


def respond(
    codes: NDArray[np.int64], count: int, epsilon: float, words: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return randomized codes.

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
    """Return T, the number of 2^64 words that map to any one other code, rounded up.

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
