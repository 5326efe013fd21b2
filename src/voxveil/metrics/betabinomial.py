r"""Beta-binomial model of the rank histogram, by maximum likelihood.

If each input has its own probability p ~ Beta(alpha, beta) that a random other speaker outscores
the right one, the number of those among N - 1 is beta-binomial:
:math:`k - 1 \sim \mathrm{BB}(N-1, \alpha, \beta)`.

The log likelihood is a sum over tail counts,

.. math:: \ell = \sum_{j=0}^{N-2} A_j \log(\alpha + j) + B_j \log(\beta + j) - M \log(\alpha+\beta+j) + c

(A_j inputs with k - 1 > j, B_j with N - k > j, M inputs), whose derivatives need divisions only.
Newton steps in (log alpha, log beta) run on many histograms at once.

Where no finite maximum exists the limit is used: all ranks at one end (gamma_1 = 1 or gamma_N = 1),
all at the two ends, or less variance than a binomial (alpha, beta to infinity: the binomial).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, xlogy

from voxveil.metrics.data import FloatArray, IntArray

__all__ = ["BetaBinomialFits", "fit_betabinomial", "log_pmf"]

_LARGEST = 1e7  # alpha + beta from here on is the binomial


@dataclass(frozen=True)
class BetaBinomialFits:
    """Fits of R histograms.

    Attributes:
        alpha: Shape ``(R,)``; nan where only a limit exists.
        beta: Shape ``(R,)``; nan where only a limit exists.
        gamma: Fitted rank probabilities, shape ``(R, N)``.
        limit: Name of the limit used, "" where the fit is finite, length R.
    """

    alpha: FloatArray
    beta: FloatArray
    gamma: FloatArray
    limit: tuple[str, ...]


def log_pmf(n_references: int, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Return log gamma_k for k = 1..N, shape ``(..., N)``."""
    n = n_references - 1
    k = np.arange(n_references, dtype=np.float64)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    a, b = np.asarray(alpha)[..., None], np.asarray(beta)[..., None]
    result: FloatArray = choose + betaln(k + a, n - k + b) - betaln(a, b)
    return result


def fit_betabinomial(histograms: FloatArray) -> BetaBinomialFits:
    """Fit each histogram of ranks.

    Args:
        histograms: Weights of ranks 1..N (fractions from spread ties allowed), shape ``(R, N)``, each
            row with a positive sum, N >= 2.
    """
    n_fits, n_ranks = histograms.shape
    n = n_ranks - 1
    total = histograms.sum(1)
    k = np.arange(n_ranks, dtype=np.float64)
    share = (histograms @ k) / total / n  # mean probability of being beaten
    gamma = np.empty((n_fits, n_ranks))
    alpha, beta = np.full(n_fits, np.nan), np.full(n_fits, np.nan)
    limit = [""] * n_fits

    ends = histograms[:, [0, -1]].sum(1) >= total * (1 - 1e-12) if n > 1 else np.ones(n_fits, dtype=np.bool_)
    fitted = np.flatnonzero(~ends)
    if fitted.size:
        a, b, status = _newton(histograms[fitted], total[fitted], share[fitted])
        alpha[fitted], beta[fitted] = a, b
        finite = status == 0
        gamma[fitted[finite]] = np.exp(log_pmf(n_ranks, a[finite], b[finite]))
        for i in fitted[~finite]:
            alpha[i] = beta[i] = np.nan
            limit[i] = "binomial"
            choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
            gamma[i] = np.exp(choose + xlogy(k, share[i]) + xlogy(n - k, 1 - share[i]))
    for i in np.flatnonzero(ends):
        limit[i] = "two ends" if 0 < share[i] < 1 else "one end"
        gamma[i] = 0.0
        gamma[i, 0], gamma[i, -1] = 1 - share[i], share[i]
    return BetaBinomialFits(alpha, beta, gamma, tuple(limit))


def _newton(h: FloatArray, total: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return alpha, beta and a status (0 found, 1 no finite maximum) for each row."""
    n = h.shape[1] - 1
    j = np.arange(n, dtype=np.float64)
    above = total[:, None] - np.cumsum(h, axis=1)[:, :n]  # inputs with k - 1 > j
    below = np.cumsum(h, axis=1)[:, :n][:, ::-1]  # inputs with n - (k - 1) > j
    above = np.maximum(above, 0.0)

    # Start: method of moments, kept inside a broad box.
    k = np.arange(n + 1, dtype=np.float64)
    variance = (h @ (k * k)) / total - (n * share) ** 2
    binomial = n * share * (1 - share)
    rho = np.clip((variance / binomial - 1) / (n - 1), 0.005, 0.9)
    size = 1 / rho - 1
    theta = np.log(np.stack([share * size, (1 - share) * size], axis=1))

    def value(t: FloatArray, rows: IntArray) -> FloatArray:
        a, b = np.exp(t[:, 0])[:, None], np.exp(t[:, 1])[:, None]
        terms = (
            above[rows] * np.log(a + j) + below[rows] * np.log(b + j) - total[rows, None] * np.log(a + b + j)
        )
        result: FloatArray = terms.sum(1)
        return result

    status = np.zeros(h.shape[0])
    active: IntArray = np.arange(h.shape[0], dtype=np.int64)
    current = value(theta, active)
    for _ in range(200):
        if not active.size:
            break
        a, b = np.exp(theta[active, 0]), np.exp(theta[active, 1])
        ra, rb, rs = 1 / (a[:, None] + j), 1 / (b[:, None] + j), 1 / ((a + b)[:, None] + j)
        m = total[active]
        up, down = above[active], below[active]
        ga = a * ((up * ra).sum(1) - m * rs.sum(1))
        gb = b * ((down * rb).sum(1) - m * rs.sum(1))
        squares = m * (rs * rs).sum(1)
        haa = ga - a * a * ((up * ra * ra).sum(1) - squares)
        hbb = gb - b * b * ((down * rb * rb).sum(1) - squares)
        hab = a * b * squares
        step = _ascent(ga, gb, haa, hbb, hab)
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(1), 1e-300))[:, None]
        gradient = np.maximum(np.abs(ga), np.abs(gb))
        done = gradient <= 1e-11 * m
        # Halve a step until it does not lose likelihood.
        trial = theta[active] + step
        new = value(trial, active)
        for _ in range(40):
            worse = (new < current[active] - 1e-12 * np.abs(current[active])) & ~done
            if not worse.any():
                break
            trial[worse] = (trial[worse] + theta[active[worse]]) / 2
            new[worse] = value(trial[worse], active[worse])
        still = np.abs(trial - theta[active]).max(1) <= 1e-14
        theta[active[~done]] = trial[~done]
        current[active[~done]] = new[~done]
        flat = np.exp(theta[active]).sum(1) > _LARGEST
        status[active[flat]] = 1
        active = active[~(done | flat | still)]
    return np.exp(theta[:, 0]), np.exp(theta[:, 1]), status


def _ascent(ga: FloatArray, gb: FloatArray, haa: FloatArray, hbb: FloatArray, hab: FloatArray) -> FloatArray:
    """Return Newton steps where the Hessian is negative definite, scaled gradient steps elsewhere."""
    det = haa * hbb - hab * hab
    concave = (haa < 0) & (det > 0)
    safe = np.where(concave, det, 1.0)
    newton = np.stack([-(hbb * ga - hab * gb) / safe, -(haa * gb - hab * ga) / safe], axis=1)
    size = np.maximum(np.maximum(np.abs(ga), np.abs(gb)), 1e-300)
    gradient = np.stack([ga / size, gb / size], axis=1)
    return np.where(concave[:, None], newton, gradient)
