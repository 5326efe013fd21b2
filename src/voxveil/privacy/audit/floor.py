"""Floor of word errors under any locally private mechanism: what no mechanism of a given epsilon can beat.

**Theorem.** Let sentences have the distribution p, let recording x(y) be of sentence y, and let M be
epsilon-locally-private for these recordings. Whoever reads the output, P(the right sentence) is at most the
p-mass of the e^epsilon likeliest sentences, and P(at most D word edits from it) at most the p-mass of the
e^epsilon N_D likeliest, N_D the largest number of sentences within D edits of any string.

**Proof.** What is read is post-processing, so let M give a string. Let q be the distribution of M(x0) for
any fixed recording x0, and B(y) the strings within D edits of y. Then a(y) = P(M(x(y)) in B(y)) is at most
1 and at most e^epsilon q(B(y)), and sum_y q(B(y)) = sum_z q(z) |{y: z in B(y)}| <= N_D. So sum_y a(y) <=
e^epsilon N_D, and sum_y p(y) a(y) is largest where a is 1 on the likeliest sentences.

**By length.** With weights w(y) > 0, sum_y w(y) a(y) <= e^epsilon W, W the largest sum of w over the
sentences within D edits of a string. Here w(y) = 1 / N_D(m), N_D(m) the largest number of sentences of m
words within D edits, m the words of y. A string reaches 2 D + 1 lengths at most, so W <= 2 D + 1. A short
sentence is then not charged with the neighbours of the longest.

**From draws.** For every t > 0, by duality,

    sum_y p(y) a(y) <= t e^epsilon W + E max(0, 1 - t w(Y) / p(Y)),   Y drawn from p.

The expectation is of a function of p(Y) / w(Y) that rises from 0 to 1, so it is at most its mean over n
independent draws plus sqrt(ln(1 / delta) / (2 n)), for all t at once, with probability 1 - delta
(Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990). The number of sentences that are likelier than t need
not be known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from voxveil.runtime.errors import InputError

__all__ = ["Floor", "floor_of", "largest_mass", "log_neighbours"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
#: Thresholds t that are tried; each gives a bound that holds.
_THRESHOLDS = 4000


@dataclass(frozen=True)
class Floor:
    """What no epsilon-locally-private mechanism beats on a source of sentences.

    Attributes:
        epsilons: (n,) in nat, of a whole sentence.
        exact: (n,) the largest probability of the right sentence.
        errors: (n,) the smallest word errors in % of the words of the sentences.
        confidence: Of all of them at once; 0 where the draws are real text, whose distribution is not known.
        draws: Sentences behind it.
    """

    epsilons: tuple[float, ...]
    exact: tuple[float, ...]
    errors: tuple[float, ...]
    confidence: float
    draws: int

    @property
    def kind(self) -> str:
        """``theorem`` for sentences drawn from the language, ``estimate`` for real text."""
        return "theorem" if self.confidence else "estimate"

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, and the kind."""
        return {**asdict(self), "kind": self.kind}


def floor_of(
    log_p: Floats,
    lengths: Ids,
    epsilons: Sequence[float],
    *,
    vocabulary: int,
    longest: int,
    confidence: float,
) -> Floor:
    """Return the floor of a source from independent sentences of it.

    Args:
        log_p: (n,) natural logarithms of the sentences' probabilities. Where the sentences are real text and
            the probabilities those of a language model, the result is an estimate: a better model lowers it.
        lengths: (n,) words of each.
        epsilons: At least 0, of a whole sentence.
        vocabulary: Number of words that sentences consist of.
        longest: Words of the longest sentence.
        confidence: That all of the floor holds, above 0 and below 1, for sentences drawn from ``log_p``; 0
            for an estimate without any allowance.

    Raises:
        InputError: No sentence, or no word in any.
    """
    count = len(log_p)
    if not count or not lengths.any():
        raise InputError("a floor of word errors needs sentences with words in them")
    # Confidence is shared by the number of edits, and by the mean length.
    risk = (1.0 - confidence) / (longest + 2)
    allowance = math.sqrt(math.log(1.0 / risk) / (2.0 * count)) if confidence else 0.0
    nats = np.asarray(epsilons, np.float64)
    neighbours = log_neighbours(longest, vocabulary)
    exact = np.ones(len(nats))
    missed = np.zeros(len(nats))
    for edits in range(longest + 1):
        scores = log_p + neighbours[edits][lengths]
        spread = math.log(min(2 * edits + 1, longest + 1))
        mass = np.minimum(largest_mass(scores, nats + spread) + allowance, 1.0)
        if not edits:
            exact = mass
        missed += 1.0 - mass
        if (mass >= 1.0).all():
            break
    words = float(lengths.mean()) + longest * allowance
    return Floor(
        tuple(nats.tolist()),
        tuple(exact.tolist()),
        tuple((100.0 * missed / words).tolist()),
        confidence,
        count,
    )


def largest_mass(scores: Floats, log_counts: Floats) -> Floats:
    """Return the bound t n + mean max(0, 1 - t e^-score) at its best t, for each n.

    For scores ln p(Y) it is the mass of the n likeliest sentences, as far as these draws show it.

    Args:
        scores: (m,) ln p(Y) - ln w(Y).
        log_counts: (k,) ln n.
    """
    ordered = np.sort(scores)[::-1]
    indices = np.unique(np.linspace(0, len(ordered) - 1, min(_THRESHOLDS, len(ordered))).astype(np.int64))
    # Above the threshold ordered[index] lie ``index`` scores.
    sums = np.concatenate([[-np.inf], np.logaddexp.accumulate(-ordered)])[indices]
    thresholds = ordered[indices]
    means = (indices - np.exp(thresholds + sums)) / len(ordered)
    with np.errstate(over="ignore"):
        bounds = np.exp(thresholds[None] + log_counts[:, None]) + means[None]
    # A threshold below all scores: every sentence counts.
    return np.asarray(np.minimum(bounds.min(axis=1), 1.0))


def log_neighbours(longest: int, vocabulary: int) -> Floats:
    """Return ln N_D(m): (D, m) for D and m from 0 to ``longest``.

    N_D(m) is at least the largest number of strings of m words within D edits of any string z. Such a string
    arises from z of n words by d deletions, s substitutions and i insertions, d + s + i <= D and
    n - d + i = m: C(n, d) C(n - d, s) (V - 1)^s ways before the insertions, after which a string of m words
    that contains a given one of m - i words as a subsequence is one of sum_(j <= i) C(m, j) (V - 1)^j. There
    are V^m at most.

    Args:
        longest: Largest m, at least 1.
        vocabulary: V, at least 2.
    """
    other, size = math.log(vocabulary - 1), longest + 1
    result = np.empty((size, size))
    for m in range(size):
        result[:, m] = m * math.log(vocabulary)
        if not m:
            continue
        deletions, insertions, substitutions = np.indices((m, m, m)).reshape(3, -1)
        edits = deletions + insertions + substitutions
        # From m edits on every string of m words is near the empty one.
        kept = edits < m
        deletions, insertions, substitutions, edits = (
            part[kept] for part in (deletions, insertions, substitutions, edits)
        )
        steps = np.arange(m)
        inserted = np.logaddexp.accumulate(_log_choose(m, steps) + steps * other)
        # In units of (V - 1)^(number of edits) no term is too large for a number.
        ways = np.exp(
            _log_choose(m - insertions + deletions, deletions)
            + _log_choose(m - insertions, substitutions)
            + inserted[insertions]
            - (insertions + deletions) * other
        )
        cells = (m - insertions + deletions) * m + edits
        by_words = np.bincount(cells, ways, minlength=2 * m * m).reshape(-1, m)
        with np.errstate(divide="ignore"):
            logs = np.logaddexp.accumulate(np.log(by_words) + steps * other, axis=1)
        # Terms that vanish in double precision, and its rounding, are far below a part in 10^9.
        result[:m, m] = np.minimum(logs.max(axis=0) + 1e-9, result[:m, m])
    return result


def _log_choose(n: Any, k: Ids) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
