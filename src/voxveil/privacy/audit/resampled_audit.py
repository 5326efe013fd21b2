"""Black-box audit of the mechanism on word strings against its claimed epsilon, on a small language."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.audit.mechanism_audit import ALPHA, RELEASES, Finding, Verdict, audit_neighbours
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.resampled import ResampledWords
from voxveil.privacy.word_language import TOTAL, Level, WordLanguage
from voxveil.privacy.words import Words

__all__ = ["audit_resampled", "small_mechanism"]

_WORDS = ("a", "b", "c", "d")
#: Of the two strings that can be kept; the audited mechanism puts pi_min just below.
_SHARE = 0.25
_LAW_DRAWS = 200_000


def small_mechanism(epsilon: float) -> ResampledWords:
    """Return the mechanism with this epsilon on a language of four words and the empty string.

    Two strings have probability 1/4 and a little more, the others less. Alpha is chosen so that pi_min
    is 1/4, hence epsilon is attained by those two.

    Args:
        epsilon: Above 0.
    """
    weights = np.array([0, TOTAL // 4 + TOTAL // 2**20, TOTAL // 4 + TOTAL // 2**20, TOTAL // 8, TOTAL // 8])
    weights[0] = TOTAL - weights.sum()
    row = Level(
        np.zeros(1, np.int64), np.array([0, len(weights)], np.int64), np.arange(len(weights)), weights
    )
    alpha = 1.0 / (1.0 + _SHARE * math.expm1(epsilon))
    return ResampledWords(WordLanguage(_WORDS, (row,), longest=1), epsilon, alpha)


def audit_resampled(
    mechanism: ResampledWords,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit a mechanism of :func:`small_mechanism` against a claimed epsilon per string.

    Args:
        mechanism: What is audited; its own ``epsilon`` is not believed.
        epsilon: The claim.
        releases: Of each neighbour, at least 100.
        noise: By default that of every release, :class:`SystemNoise`.
    """
    source = noise or SystemNoise()
    first, second = Words(_WORDS[:1]), Words(_WORDS[1:2])

    def difference(words: Words) -> Callable[[int], NDArray[np.float64]]:
        def some(count: int) -> NDArray[np.float64]:
            released = mechanism.randomize([words] * count, source)
            # Above 0 speaks for the first string, below for the second, 0 for neither.
            return np.array([float(one == first) - float(one == second) for one in released])

        return some

    test = "one kept string against another"
    return [
        audit_neighbours(mechanism.name, test, epsilon, difference(first), difference(second), releases),
        _law(mechanism, epsilon, first, min(releases, _LAW_DRAWS), source),
    ]


def _law(mechanism: ResampledWords, epsilon: float, words: Words, count: int, source: NoiseSource) -> Finding:
    """Test the frequencies of released strings for a fixed kept one against the claimed distribution."""
    from scipy.stats import chisquare

    claimed = small_mechanism(epsilon)
    strings = [Words(()), *(Words((word,)) for word in _WORDS)]
    codes = [claimed.language.encode(string.sequence) or () for string in strings]
    pi = np.array([float(chance) for chance in claimed.language.probabilities(codes)])
    kept = (1.0 - claimed.alpha) * np.array([string == words for string in strings])
    expected = (claimed.alpha * pi + kept) * count
    found = Counter(mechanism.randomize([words] * count, source))
    counts = np.array([found[string] for string in strings], np.float64)
    share = counts[strings.index(words)] / count
    # The test wants five expected in every cell: where others are rarer, they count together.
    if expected.min() < 5:
        index = strings.index(words)
        counts, expected = (np.array([x[index], x.sum() - x[index]]) for x in (counts, expected))
    known = sum(found[string] for string in strings) == count
    p = float(chisquare(counts, expected).pvalue) if known else 0.0
    probability = claimed.alpha * pi[strings.index(words)] + 1.0 - claimed.alpha
    detail = f"string released {share:.4f} of the time, claimed {probability:.4f}; law p = {p:.2g}"
    verdict: Verdict = "consistent" if p >= ALPHA else "violation"
    return Finding(mechanism.name, "law of the released string", epsilon, count, verdict, None, detail)
