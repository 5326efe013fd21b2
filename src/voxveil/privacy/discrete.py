"""Exact discrete Laplace noise in integer arithmetic from the operating system's random words.

Floating-point Laplace noise leaks the input through its low bits (Mironov 2012). Here a private
value is first truncated onto a grid of spacing 2^-bits, and the noise is an integer X with
P(X = x) proportional to exp(-|x| r), r rational, sampled without error by algorithms 1 and 2 of
Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020). With r at
most epsilon / (L1 sensitivity in grid steps) the release is epsilon-DP, exactly.

r = s / 2^m with integers s and m: a power of two below makes every uniform draw a masked word.
s is rounded down, so that the epsilon spent is at most the epsilon claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import PrivacyError

__all__ = ["Rate", "Words", "bernoulli_exp", "discrete_laplace", "rate_for", "to_grid"]

#: Returns n independent uniform 64-bit words.
Words = Callable[[int], NDArray[np.uint64]]

#: m: U + 2^m V stays below 2^63 while V < 2^(63 - m) = 128, which fails with probability e^-128.
_DENOMINATOR_BITS = 56
#: s has at least this many bits: the scale is larger than claimed by less than 0.1 %.
_NUMERATOR_BITS = 10
#: Above this epsilon a grid of 2^-20 practically never moves: that is no noise, and is spelt so.
_LARGEST_EPSILON = 2.0**40
#: Draws at a time: an hour of speech needs 10^8, and each takes some hundred bytes on the way.
_BLOCK = 2**18


@dataclass(frozen=True)
class Rate:
    """The rate r = numerator / 2^denominator_bits of a discrete Laplace law, in nat per grid step."""

    numerator: int
    denominator_bits: int

    @property
    def value(self) -> Fraction:
        """Return r exactly."""
        return Fraction(self.numerator, 2**self.denominator_bits)


def rate_for(epsilon: float, sensitivity: int) -> Rate:
    """Return the largest representable rate that is at most epsilon / sensitivity.

    Args:
        epsilon: Above 0, at most 2^40.
        sensitivity: L1 sensitivity in grid steps, at least 1.

    Raises:
        PrivacyError: Epsilon is too large, or too small for this sensitivity.
    """
    if epsilon > _LARGEST_EPSILON:
        raise PrivacyError(
            f"epsilon must be at most 2^40, got {epsilon:g}: that is no noise, which is spelt 'identity'"
        )
    exact = Fraction(epsilon) / sensitivity
    bits = min(_DENOMINATOR_BITS, 61 - math.ceil(math.log2(exact)))
    numerator = math.floor(exact * 2**bits)
    if numerator < 2**_NUMERATOR_BITS:
        raise PrivacyError(
            f"epsilon {epsilon:g} is too small for a sensitivity of {sensitivity} grid steps;"
            " nothing was released"
        )
    return Rate(numerator, bits)


def to_grid(value: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Return ``value`` in steps of 2^-bits, truncated toward zero: no entry grows.

    Args:
        value: Finite, |value| at most 1.
        bits: k of the spacing 2^-k.
    """
    # Scaling by a power of two is exact in binary floating point.
    return np.trunc(np.ldexp(value, bits)).astype(np.int64)


def discrete_laplace(count: int, rate: Rate, words: Words) -> NDArray[np.int64]:
    """Return ``count`` independent integers with P(x) proportional to exp(-|x| r).

    Args:
        count: At least 0.
        rate: r.
        words: Where the randomness comes from.
    """
    result = np.empty(count, np.int64)
    for start in range(0, count, _BLOCK):
        pending = np.arange(start, min(start + _BLOCK, count))
        while len(pending):
            values, accepted = _candidates(len(pending), rate, words)
            result[pending[accepted]] = values[accepted]
            pending = pending[~accepted]
    return result


def bernoulli_exp(numerators: NDArray[np.uint64], bits: int, words: Words) -> NDArray[np.bool_]:
    """Return independent draws that are true with probability exp(-numerator / 2^bits), exactly.

    Algorithm 1 of Canonne et al.: with gamma in [0, 1], the first k at which a draw of
    probability gamma / k fails is odd with probability exp(-gamma).

    Args:
        numerators: (n,) each at most 2^bits.
        bits: At most 63.
        words: Where the randomness comes from.
    """
    mask = np.uint64(2**bits - 1)
    odd = np.ones(len(numerators), np.bool_)
    active = np.arange(len(numerators))
    k = 1
    while True:
        # gamma / k as two independent draws: gamma, then 1 / k.
        hit = (words(len(active)) & mask) < numerators[active]
        active = active[hit]
        if k > 1:
            active = active[_one_in(k, len(active), words)]
        if not len(active):
            return odd
        k += 1
        odd[active] = k % 2 == 1


def _candidates(count: int, rate: Rate, words: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One round of algorithm 2: values, and which of them are accepted."""
    bits = rate.denominator_bits
    low = words(count) & np.uint64(2**bits - 1)
    accepted = bernoulli_exp(low, bits, words)
    kept = np.flatnonzero(accepted)
    high = np.zeros(len(kept), np.int64)
    climbing = np.arange(len(kept))
    while len(climbing):
        # exp(-1): gamma = 1, whose own draw never fails.
        climbing = climbing[_bernoulli_exp_minus_one(len(climbing), words)]
        high[climbing] += 1
        if len(climbing) and int(high[climbing[0]]) >= 2 ** (63 - bits):
            raise PrivacyError("a draw of probability below e^-127 came up; nothing was released")
    magnitude = (low[kept].astype(np.int64) + (high << bits)) // rate.numerator
    negative = (words(len(kept)) & np.uint64(1)).astype(np.bool_)
    # Zero has one sign, else it would be drawn twice as often.
    accepted[kept[negative & (magnitude == 0)]] = False
    values = np.zeros(count, np.int64)
    values[kept] = np.where(negative, -magnitude, magnitude)
    return values, accepted


def _bernoulli_exp_minus_one(count: int, words: Words) -> NDArray[np.bool_]:
    odd = np.ones(count, np.bool_)
    active = np.arange(count)
    k = 1
    while len(active):
        if k > 1:
            active = active[_one_in(k, len(active), words)]
        k += 1
        odd[active] = k % 2 == 1
    return odd


def _one_in(k: int, count: int, words: Words) -> NDArray[np.bool_]:
    """Independent draws that are true with probability 1 / k, exactly."""
    quotient = 2**64 // k
    last = np.uint64(quotient * k - 1)
    drawn = words(count)
    # The few words beyond the last multiple of k are drawn again.
    while (beyond := np.flatnonzero(drawn > last)).size:
        drawn[beyond] = words(beyond.size)
    return drawn < np.uint64(quotient)
