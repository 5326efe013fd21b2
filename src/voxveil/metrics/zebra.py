r"""The ZEBRA metrics (Nautsch et al., "The Privacy ZEBRA", Interspeech 2020).

*Expected disclosure* D_ECE, in bit: the area between the empirical cross-entropy (ECE) of an
adversary who only has a prior :math:`\pi` and of one who also has the unsmoothed PAV LLRs, over
all priors in [0, 1]. 0: no evidence; 1/log 4 = 0.7213: full disclosure.

*Worst case* in nat: the largest \|LLR\| of any score, Laplace-smoothed by ZEBRA's convention, with
the tag of its base-10 value x: 0 (none), A (x <= 1), B (<= 2), C (<= 4), D (<= 5), E (<= 6), F.

The integral has a closed form. With :math:`r = e^{-\mathrm{LLR}}` for a target and
:math:`r = e^{\mathrm{LLR}}` for a nontarget score,

.. math:: \int_0^1 \pi \ln\Bigl(1 + r\frac{1-\pi}{\pi}\Bigr) d\pi = \tfrac14 + g(r), \qquad
          g(r) = \frac{-\frac14 + r - \frac34 r^2 + \frac12 r^2 \ln r}{(1-r)^2}

so that D_ECE = -(mean of g over targets + mean of g over nontargets) / ln 2.
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import FloatArray
from voxveil.metrics.pav import PavBins

__all__ = ["EXPECTED_DISCLOSURE_MAX", "ece", "expected_disclosure", "zebra_tag"]

EXPECTED_DISCLOSURE_MAX = 1 / np.log(4)
"""D_ECE of perfectly separated scores, in bit."""

_TAGS = ((np.finfo(np.float64).eps, "0"), (1.0, "A"), (2.0, "B"), (4.0, "C"), (5.0, "D"), (6.0, "E"))


def expected_disclosure(bins: PavBins) -> float:
    """Return D_ECE in bit, in [0, 1/log 4].

    Args:
        bins: Unsmoothed PAV bins.
    """
    t, n = bins.target > 0, bins.nontarget > 0
    target = bins.target[t] @ _g(-bins.llr[t]) / bins.n_target
    nontarget = bins.nontarget[n] @ _g(bins.llr[n]) / bins.n_nontarget
    return max(0.0, float(-(target + nontarget) / np.log(2)))


def zebra_tag(log10_llr: float) -> str:
    """Return ZEBRA's categorical tag of a worst-case LLR in base 10."""
    for limit, tag in _TAGS:
        if log10_llr <= limit:
            return tag
    return "F"


def ece(bins: PavBins, prior_logit: FloatArray) -> FloatArray:
    """Return the empirical cross-entropy in bit at each prior log-odds (natural log).

    Args:
        bins: Unsmoothed PAV bins, or a single bin of LLR 0 for the prior alone.
        prior_logit: log(pi / (1 - pi)), shape ``(P,)``.
    """
    prior = 1 / (1 + np.exp(-prior_logit))
    t, n = bins.target > 0, bins.nontarget > 0
    miss = (
        np.logaddexp(0.0, -(bins.llr[t][:, None] + prior_logit)) * (bins.target[t] / bins.n_target)[:, None]
    )
    false = np.logaddexp(0.0, bins.llr[n][:, None] + prior_logit)
    false *= (bins.nontarget[n] / bins.n_nontarget)[:, None]
    result: FloatArray = (prior * miss.sum(0) + (1 - prior) * false.sum(0)) / np.log(2)
    return result


def _g(log_r: FloatArray) -> FloatArray:
    """Return g(r) of the module docstring at r = exp(log_r); log_r = -inf gives -1/4."""
    result = np.empty(log_r.size)
    close = np.abs(log_r) < 0.1
    # numerator and denominator vanish at r = 1: g = sum_k (-1)^(k+1) d^k / (k (k+1) (k+2)), d = r - 1
    d = np.expm1(log_r[close])
    series = np.zeros(d.size)
    for k in range(20, 0, -1):
        series = d * ((1 if k % 2 else -1) / (k * (k + 1) * (k + 2)) + series)
    result[close] = series
    small = ~close & (log_r <= 0)
    r = np.exp(log_r[small])
    with np.errstate(invalid="ignore"):
        r2log = np.where(r > 0, r * r * np.log(np.maximum(r, np.finfo(np.float64).tiny)), 0.0)
    result[small] = (-0.25 + r - 0.75 * r * r + 0.5 * r2log) / (1 - r) ** 2
    large = ~close & (log_r > 0)
    s = np.exp(-log_r[large])
    result[large] = (-0.25 * s * s + s - 0.75 + 0.5 * log_r[large]) / (1 - s) ** 2
    return result
