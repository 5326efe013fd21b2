"""k-ary subset selection: releases a set of d codes that contains the true one with raised probability.

Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential
privacy", IEEE Transactions on Information Theory 2018; Wang et al., "Mutual information optimally
local private discrete distribution estimation", 2016. The code is in the set with probability
d e^epsilon / (d e^epsilon + k - d); the others fill it up, every set of them equally likely. A set
that holds the code is e^epsilon times as likely as one that does not, and any two codes give any
set with probabilities whose ratio is at most that. At d = 1 it is randomized response.

d is the size that passes the most information (Wang et al.): near k (c - 1) / (e^epsilon - 1), c =
epsilon / (1 - e^-epsilon), where the information reaches c - 1 - ln c, the most that any
epsilon-locally-private mechanism passes (:func:`voxveil.privacy.audit.information.channel_information`).
Ye and Barg, who estimate frequencies, take k / (e^epsilon + 1), which passes up to a tenth less for
epsilon of 2 or less.

One 64-bit word decides whether the code is in the set: T = floor(2^64 (k - d) / (d e^epsilon + k - d))
+ 1 of the 2^64 say no. Rounding T up lowers the ratio, so the epsilon spent is at most the epsilon
claimed, exactly. The others are ranked by a word each, and ranked again where two words are equal,
which leaves every order exactly as likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.codes import CodeMechanism
from voxveil.privacy.discrete import Words
from voxveil.privacy.noise import NoiseSource

__all__ = ["SubsetSelection", "passed_information", "select", "subset_size", "words_without"]

_WORDS = 2**64


@dataclass(frozen=True)
class SubsetSelection(CodeMechanism):
    """Releases a set of d codes per vector as shares 1 / d; epsilon per vector.

    It is meant for small epsilon: of 40 phones it passes 9.6 / 5.3 / 2.8 / 1.6 times what randomized
    response passes at 0.1 / 1 / 2 / 3; from about 5 on d is 1 and the two are one.
    """

    name: str = "subset_selection"

    def randomize(self, codes: NDArray[np.int64], count: int, noise: NoiseSource) -> NDArray[Any]:
        """Return the indicators of the sets, divided by their size: (K, count)."""
        size = subset_size(self.epsilon, count)
        return select(codes, count, size, self.epsilon, noise.words) / size


def select(
    codes: NDArray[np.int64], count: int, size: int, epsilon: float, words: Words
) -> NDArray[np.bool_]:
    """Return the released sets of codes.

    Args:
        codes: (K,) true codes, 0 to count - 1.
        count: k.
        size: d, 1 to count - 1.
        epsilon: Per code.
        words: Where the randomness comes from: K words, then K (k - 1), then more for rows with equal words.

    Returns:
        (K, count) bool, d of each row true.
    """
    inside = words(len(codes)) >= np.uint64(words_without(epsilon, count, size))
    # Places are counted from the code on: its own first, then those of the others.
    chosen = np.empty((len(codes), count), np.bool_)
    chosen[:, 0] = inside
    chosen[:, 1:] = _ranks(len(codes), count - 1, words) < (size - inside)[:, None]
    result = np.empty_like(chosen)
    np.put_along_axis(result, (codes[:, None] + np.arange(count)) % count, chosen, axis=1)
    return result


def words_without(epsilon: float, count: int, size: int) -> int:
    """Return T, the number of 2^64 words that map to a set without the code, rounded up.

    Args:
        epsilon: Above 0.
        count: k, at least 2.
        size: d, 1 to count - 1.
    """
    with localcontext() as context:
        context.prec = 60
        share = (count - size) / (size * Decimal(epsilon).exp() + count - size)
        return math.floor(_WORDS * share) + 1


def subset_size(epsilon: float, count: int) -> int:
    """Return d, the size of the sets that pass the most information.

    Args:
        epsilon: Above 0.
        count: k, at least 2.
    """
    return max(range(1, count), key=lambda size: (passed_information(epsilon, count, size), -size))


def passed_information(epsilon: float, count: int, size: int) -> float:
    """Return the information of one vector with equally likely codes, the maximum, in nat.

    q epsilon - ln(1 + (e^epsilon - 1) d / k), q the probability that the code is in the set.
    """
    odds = size * math.exp(epsilon)
    return odds / (odds + count - size) * epsilon - math.log1p(math.expm1(epsilon) * size / count)


def _ranks(rows: int, count: int, words: Words) -> NDArray[np.int64]:
    """Return independent uniform random orders: (rows, count), each row a permutation of 0 to count - 1."""
    ranks = np.empty((rows, count), np.int64)
    pending = np.arange(rows)
    while len(pending):
        keys = words(len(pending) * count).reshape(len(pending), count)
        order = keys.argsort(axis=1)
        ordered = np.take_along_axis(keys, order, axis=1)
        distinct = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
        fresh = np.empty((int(distinct.sum()), count), np.int64)
        np.put_along_axis(fresh, order[distinct], np.arange(count)[None], axis=1)
        ranks[pending[distinct]] = fresh
        pending = pending[~distinct]
    return ranks
