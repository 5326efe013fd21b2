"""Audit of randomised response: released codes only, against the claim."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from voxveil.audit.mechanism_audit import (
    ALPHA,
    RELEASES,
    Finding,
    Verdict,
    audit_neighbours,
    require_releases,
)
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.response import RandomizedResponse, kept_probability

__all__ = ["audit_response"]

_CODES = 40


def audit_response(
    mechanism: RandomizedResponse,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit the code mechanism against a claimed epsilon per vector.

    Args:
        mechanism: What is audited; its own ``epsilon`` is not believed.
        epsilon: The claim.
        releases: Of each neighbour, at least 100.
        noise: By default that of every release, :class:`SystemNoise`.
    """
    require_releases(releases)
    source = noise or SystemNoise()
    return [
        *(
            audit_neighbours(
                mechanism.name,
                f"code 0 against code 1 of {codes}",
                epsilon,
                _draw(mechanism, 0, codes, source),
                _draw(mechanism, 1, codes, source),
                releases,
            )
            for codes in (2, _CODES)
        ),
        _law(mechanism, epsilon, releases, source),
    ]


def _draw(
    mechanism: RandomizedResponse, code: int, codes: int, source: NoiseSource
) -> Callable[[int], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    def some(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        scores = np.zeros((count, codes))
        scores[:, code] = 1.0
        told = mechanism.release(scores, source).value
        # 1 speaks for code 0, -1 for code 1, 0 for neither.
        return np.asarray(told[:, 0] - told[:, 1], np.float64)

    return some


def _law(mechanism: RandomizedResponse, epsilon: float, releases: int, source: NoiseSource) -> Finding:
    """Test how often each code is told for a fixed one, against the claim's own law."""
    from scipy.stats import chisquare

    count = min(releases, 200_000)
    scores = np.zeros((count, _CODES))
    scores[:, 7] = 1.0
    told = mechanism.release(scores, source).value.argmax(axis=1)
    kept = kept_probability(epsilon, _CODES)
    counts = np.bincount(told, minlength=_CODES).astype(np.float64)
    expected = np.full(_CODES, (1.0 - kept) / (_CODES - 1) * count)
    expected[7] = kept * count
    # The test wants five expected in every cell: where others are rarer, they count together.
    if expected.min() < 5:
        counts, expected = (np.array([x[7], x.sum() - x[7]]) for x in (counts, expected))
    p = float(chisquare(counts, expected).pvalue)
    detail = f"code kept {np.mean(told == 7):.4f} of the time, claimed {kept:.4f}; law p = {p:.2g}"
    verdict: Verdict = "consistent" if p >= ALPHA else "violation"
    return Finding(
        mechanism.name,
        f"law of the told code, {_CODES} codes",
        epsilon,
        count,
        verdict,
        None,
        detail,
    )
