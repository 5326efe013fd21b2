r"""Identification rate and disclosure as a function of the number of speakers N.

*Fewer speakers than measured* needs no model: an input with m stronger references among N - 1 has a
hypergeometric number of them among n - 1 drawn without replacement, so the rank histogram at n < N is
known exactly in expectation.

*More speakers* is extrapolation. The beta-binomial predicts

.. math:: \gamma_1(N) = \frac{B(\alpha, \beta + N - 1)}{B(\alpha, \beta)}
          \to N^{-\alpha}\,\frac{\Gamma(\alpha+\beta)}{\Gamma(\beta)}

and its mean disclosure tends to KL(Beta(alpha, beta) || U(0, 1)). Without any assumption, more
candidates only help to hide: :math:`0 \le \gamma_1(N') \le \gamma_1(N)` for N' >= N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from voxveil.metrics.betabinomial import fit_betabinomial, log_pmf
from voxveil.metrics.data import FloatArray, IntArray
from voxveil.metrics.disclosure import mean_disclosure

__all__ = [
    "PopulationCurve",
    "population_curve",
    "predicted_disclosure",
    "predicted_identification",
    "subsampled_histogram",
]


@dataclass(frozen=True)
class PopulationCurve:
    """Identification rate and disclosure by the number of speakers.

    Attributes:
        sizes: Numbers of speakers, ascending, shape ``(P,)``.
        identification: gamma_1 as a fraction, shape ``(P,)``; measured up to ``n_references``.
        disclosure: Mean disclosure in bit, shape ``(P,)``; measured up to ``n_references``.
        identification_bb: The beta-binomial's, shape ``(P,)``; None where it has no finite fit.
        disclosure_bb: The beta-binomial's, shape ``(P,)``; None where it has no finite fit.
        upper: Assumption-free upper bound of gamma_1 above ``n_references``, shape ``(P,)``.
        n_references: N of the measurement; larger sizes are extrapolation.
    """

    sizes: IntArray
    identification: FloatArray
    disclosure: FloatArray
    identification_bb: FloatArray | None
    disclosure_bb: FloatArray | None
    upper: FloatArray
    n_references: int


def subsampled_histogram(histogram: FloatArray, n_references: int) -> FloatArray:
    """Return the expected rank histogram among fewer references.

    Args:
        histogram: Weights of ranks 1..N, shape ``(N,)``.
        n_references: n in 2..N; each input keeps its own reference and n - 1 random others.

    Returns:
        Weights of ranks 1..n, shape ``(n,)``, same sum.
    """
    others = histogram.size - 1
    if not 2 <= n_references <= histogram.size:
        raise ValueError(f"n_references must be in 2..{histogram.size}, got {n_references}")
    drawn = n_references - 1
    result = np.zeros(n_references)
    stronger = np.flatnonzero(histogram)
    log_factorial: FloatArray = gammaln(np.arange(1, others + 2))

    def log_choose(n: IntArray, k: int) -> FloatArray:
        result: FloatArray = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
        return result

    # C(m, j) C(others - m, drawn - j) / C(others, drawn), one number of stronger references j at a time
    total = float(log_choose(np.array([others]), drawn)[0])
    for j in range(n_references):
        m = stronger[(stronger >= j) & (others - stronger >= drawn - j)]
        if m.size:
            result[j] = histogram[m] @ np.exp(log_choose(m, j) + log_choose(others - m, drawn - j) - total)
    return result


def predicted_identification(alpha: float, beta: float, sizes: IntArray) -> FloatArray:
    """Return the beta-binomial's gamma_1 (a fraction) among each number of speakers."""
    result: FloatArray = np.exp(
        betaln(alpha, beta + np.asarray(sizes, dtype=np.float64) - 1) - betaln(alpha, beta)
    )
    return result


def predicted_disclosure(alpha: float, beta: float, sizes: IntArray) -> FloatArray:
    """Return the beta-binomial's mean disclosure in bit among each number of speakers."""
    a, b = np.array(alpha), np.array(beta)
    return np.array([float(mean_disclosure(np.exp(log_pmf(int(n), a, b)))) for n in sizes])


def population_curve(histogram: FloatArray, largest: int = 1_000_000, n_points: int = 40) -> PopulationCurve:
    """Return identification and disclosure from 2 speakers up to ``largest``.

    Args:
        histogram: Weights of ranks 1..N, shape ``(N,)``.
        largest: Largest number of speakers, at least N.
        n_points: About how many sizes, on a log scale.
    """
    n = histogram.size
    grid = np.unique(np.geomspace(2, max(largest, n), n_points).round().astype(np.int64))
    sizes = np.unique(np.concatenate([grid, [n]]))
    measured = sizes <= n
    total = histogram.sum()
    gammas = [subsampled_histogram(histogram, int(size)) / total for size in sizes[measured]]
    identification, disclosure = np.full(sizes.size, np.nan), np.full(sizes.size, np.nan)
    identification[measured] = [gamma[0] for gamma in gammas]
    disclosure[measured] = [float(mean_disclosure(gamma)) for gamma in gammas]
    fits = fit_betabinomial(histogram[None])
    alpha, beta = float(fits.alpha[0]), float(fits.beta[0])
    finite = np.isfinite(alpha)
    upper = np.where(measured, identification, histogram[0] / total)
    return PopulationCurve(
        sizes,
        identification,
        disclosure,
        predicted_identification(alpha, beta, sizes) if finite else None,
        predicted_disclosure(alpha, beta, sizes) if finite else None,
        upper,
        n,
    )
