"""Exact discrete Gaussian noise of fixed width in integer arithmetic from system random words.

P(x) is proportional to exp(-x^2 / (2 sigma^2)) over the integers, sigma = 2^24, sampled without error
by algorithm 3 of Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020):
a discrete Laplace draw of scale sigma is kept with probability exp(-(|x| - sigma)^2 / (2 sigma^2)).

Other widths are reached by scaling the value that is perturbed, not the noise: with sigma and 2 sigma^2
powers of two every uniform draw is a masked word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.discrete import Rate, Words, bernoulli_exp, discrete_laplace
from voxveil.runtime.errors import PrivacyError

__all__ = ["SIGMA_BITS", "discrete_gaussian"]

#: sigma = 2^24 steps: widths a thousandth apart are told apart, and squares stay below 2^63.
SIGMA_BITS = 24
#: Squares are of numbers below it; a draw beyond, 129 sigma out, has probability below e^-127.
_FARTHEST = 2**31
#: Draws at a time.
_BLOCK = 2**18


def discrete_gaussian(count: int, words: Words, sigma_bits: int = SIGMA_BITS) -> NDArray[np.int64]:
    """Return ``count`` independent integers with P(x) proportional to exp(-x^2 / (2 sigma^2)).

    Args:
        count: At least 0.
        words: Where the randomness comes from.
        sigma_bits: sigma = 2^sigma_bits, at most 24 of them.

    Raises:
        PrivacyError: A draw of probability below e^-127 came up.
    """
    result = np.empty(count, np.int64)
    for start in range(0, count, _BLOCK):
        pending = np.arange(start, min(start + _BLOCK, count))
        while len(pending):
            values = discrete_laplace(len(pending), Rate(1, sigma_bits), words)
            distance = np.abs(np.abs(values) - 2**sigma_bits)
            if int(distance.max()) >= _FARTHEST:
                raise PrivacyError("a draw of probability below e^-127 came up; nothing was released")
            accepted = _bernoulli_exp(np.square(distance).astype(np.uint64), 2 * sigma_bits + 1, words)
            result[pending[accepted]] = values[accepted]
            pending = pending[~accepted]
    return result


def _bernoulli_exp(numerators: NDArray[np.uint64], bits: int, words: Words) -> NDArray[np.bool_]:
    """Return draws that are true with probability exp(-numerator / 2^bits), however large the numerator.

    exp(-(n + f)) as n draws of exp(-1) and one of exp(-f), until one fails.
    """
    one = np.uint64(2**bits)
    whole = numerators >> np.uint64(bits)
    true = bernoulli_exp(numerators & (one - np.uint64(1)), bits, words)
    active = np.flatnonzero(true & (whole > 0))
    while len(active):
        hit = bernoulli_exp(np.full(len(active), one), bits, words)
        true[active[~hit]] = False
        active = active[hit]
        whole[active] -= np.uint64(1)
        active = active[whole[active] > 0]
    return true
