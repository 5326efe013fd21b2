"""Black-box audit of the mechanisms on codes against their claimed epsilon."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.audit.mechanism_audit import (
    ALPHA,
    RELEASES,
    Finding,
    Verdict,
    audit_neighbours,
)
from voxveil.privacy.codes import CodeMechanism
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.response import RandomizedResponse, kept_probability
from voxveil.privacy.subset import SubsetSelection, subset_size

__all__ = ["audit_response", "audit_subset"]

_CODES = 40


def audit_response(
    mechanism: RandomizedResponse,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit randomized response against a claimed epsilon per vector.

    Args:
        mechanism: What is audited; its own ``epsilon`` is not believed.
        epsilon: The claim.
        releases: Of each neighbour, at least 100.
        noise: By default that of every release, :class:`SystemNoise`.
    """
    source = noise or SystemNoise()
    return [*_neighbours(mechanism, epsilon, releases, source), _law(mechanism, epsilon, releases, source)]


def audit_subset(
    mechanism: SubsetSelection,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit subset selection against a claimed epsilon per vector; arguments as above."""
    source = noise or SystemNoise()
    return [
        *_neighbours(mechanism, epsilon, releases, source),
        _subset_law(mechanism, epsilon, releases, source),
    ]


def _neighbours(
    mechanism: CodeMechanism, epsilon: float, releases: int, source: NoiseSource
) -> list[Finding]:
    def difference(code: int, codes: int, count: int) -> NDArray[np.float64]:
        released = _released(mechanism, code, codes, count, source)
        # Above 0 speaks for code 0, below for code 1, 0 for neither.
        return np.asarray(released[:, 0] - released[:, 1], np.float64)

    return [
        audit_neighbours(
            mechanism.name,
            f"code 0 against code 1 of {codes}",
            epsilon,
            partial(difference, 0, codes),
            partial(difference, 1, codes),
            releases,
        )
        for codes in (2, _CODES)
    ]


def _released(
    mechanism: CodeMechanism, code: int, codes: int, count: int, source: NoiseSource
) -> NDArray[Any]:
    """Return ``count`` releases of one code out of ``codes``: (count, codes)."""
    scores = np.zeros((count, codes))
    scores[:, code] = 1.0
    return np.asarray(mechanism.release(scores, source).value)


def _law(mechanism: RandomizedResponse, epsilon: float, releases: int, source: NoiseSource) -> Finding:
    """Test the frequencies of released codes for a fixed code against the claimed distribution."""
    from scipy.stats import chisquare

    count = min(releases, 200_000)
    released = _released(mechanism, 7, _CODES, count, source).argmax(axis=1)
    kept = kept_probability(epsilon, _CODES)
    counts = np.bincount(released, minlength=_CODES).astype(np.float64)
    expected = np.full(_CODES, (1.0 - kept) / (_CODES - 1) * count)
    expected[7] = kept * count
    # The test wants five expected in every cell: where others are rarer, they count together.
    if expected.min() < 5:
        counts, expected = (np.array([x[7], x.sum() - x[7]]) for x in (counts, expected))
    p = float(chisquare(counts, expected).pvalue)
    detail = f"code kept {np.mean(released == 7):.4f} of the time, claimed {kept:.4f}; law p = {p:.2g}"
    verdict: Verdict = "consistent" if p >= ALPHA else "violation"
    test = f"law of the told code, {_CODES} codes"
    return Finding(mechanism.name, test, epsilon, count, verdict, None, detail)


def _subset_law(mechanism: SubsetSelection, epsilon: float, releases: int, source: NoiseSource) -> Finding:
    """Test the released sets for a fixed code: size, inclusion frequency, and other members."""
    from scipy.stats import binomtest, chi2

    count, others = min(releases, 200_000), _CODES - 1
    released = _released(mechanism, 7, _CODES, count, source) > 0
    size = subset_size(epsilon, _CODES)
    sizes = released.sum(axis=1)
    held = 1.0 / (1.0 + (_CODES - size) / size * math.exp(-epsilon))
    hits = int(released[:, 7].sum())
    p_held = float(binomtest(hits, count, held).pvalue)
    # Sampling without replacement: every other code is as likely, and any two shut each other out.
    filled = np.delete(released, 7, axis=1).sum(axis=0)
    share = (sizes - released[:, 7]) / others
    spread = float((share * (1.0 - share)).sum())
    statistic = float(np.square(filled - filled.mean()).sum()) * (others - 1) / (others * spread)
    p_filled = float(chi2.sf(statistic, others - 1))
    right = bool((sizes == size).all()) and min(p_held, p_filled) >= ALPHA / 2
    detail = (
        f"sets of {sizes.min()} to {sizes.max()}, claimed {size}; code in it {hits / count:.4f} of the time,"
        f" claimed {held:.4f}; p = {p_held:.2g}; the others equally often p = {p_filled:.2g}"
    )
    verdict: Verdict = "consistent" if right else "violation"
    test = f"law of the told set, {_CODES} codes"
    return Finding(mechanism.name, test, epsilon, count, verdict, None, detail)
