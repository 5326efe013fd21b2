r"""Pool adjacent violators (PAV): the monotone likelihood ratio of a score.

PAV cuts the ascending scores into bins whose share of target trials never falls. In a bin
with ``t`` of ``T`` target and ``f`` of ``F`` nontarget trials

.. math:: \mathrm{LLR} = \log(t/f) - \log(T/F) \quad\text{[nat]}

Tied scores are pooled before, equal neighbouring bins after. The pure bins at the ends have
infinite LLRs; a rule of succession makes them finite:

* ``zebra``: as if labels target, nontarget stood below the lowest and above the highest score,
  PAV again, prior from the unsmoothed counts (Nautsch et al., "The Privacy ZEBRA", 2020). Stays
  monotone. ZEBRA's default and ours.
* ``pure-bins``, ``end-bins``, ``all-bins``: (t+1)/(t+f+2) in place of t/(t+f) in bins of one
  class, in the first and last bin, in every bin.
* ``none``: nothing; a pure bin is unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from voxveil.metrics.data import CountTable, FloatArray, IntArray

__all__ = ["PAV_RULES", "PavBins", "bin_llr", "pav", "pool_counts", "smooth"]

PAV_RULES = ("zebra", "pure-bins", "end-bins", "all-bins", "none")


@dataclass(frozen=True)
class PavBins:
    """PAV bins in ascending score order.

    Attributes:
        low: Lowest score in each bin, shape ``(B,)``.
        high: Highest score in each bin, shape ``(B,)``.
        target: Target trials in each bin, shape ``(B,)``.
        nontarget: Nontarget trials in each bin, shape ``(B,)``.
        llr: LLR in nat, shape ``(B,)``; infinite where an unsmoothed bin holds one class.
        n_target: All target trials (without pseudo-labels).
        n_nontarget: All nontarget trials (without pseudo-labels).
    """

    low: FloatArray
    high: FloatArray
    target: IntArray
    nontarget: IntArray
    llr: FloatArray
    n_target: int
    n_nontarget: int

    def max_abs_llr(self) -> float:
        """Return the largest absolute LLR in nat (may be infinite)."""
        return float(np.abs(self.llr).max())


def pool_counts(target: IntArray, nontarget: IntArray) -> IntArray:
    """Return the index of the first element of each PAV bin, then the number of elements.

    Args:
        target: Target counts in ascending score order, shape ``(G,)``.
        nontarget: Nontarget counts, shape ``(G,)``; no element is empty.
    """
    total = (target + nontarget).astype(np.float64)
    bounds: IntArray = isotonic_regression(target / total, weights=total).blocks.astype(np.int64)
    # scipy compares rounded means; counts decide exactly. Equal neighbours become one bin.
    while bounds.size > 2:
        t = np.add.reduceat(target, bounds[:-1])
        f = np.add.reduceat(nontarget, bounds[:-1])
        rises = t[1:] * f[:-1] > t[:-1] * f[1:]
        if rises.all():
            break
        bounds = np.concatenate([bounds[:1], bounds[1:-1][rises], bounds[-1:]])
    return bounds


def bin_llr(target: IntArray, nontarget: IntArray, n_target: int, n_nontarget: int) -> FloatArray:
    """Return log(t/f) - log(T/F) in nat; infinite where a bin holds one class."""
    with np.errstate(divide="ignore"):
        llr: FloatArray = np.log(target / nontarget) - np.log(n_target / n_nontarget)
    # The same share as overall is no evidence, whatever rounding says.
    llr[target * n_nontarget == nontarget * n_target] = 0.0
    return llr


def pav(table: CountTable) -> PavBins:
    """Return the unsmoothed PAV bins of a count table."""
    bounds = pool_counts(table.target, table.nontarget)
    start, stop = bounds[:-1], bounds[1:]
    t = np.add.reduceat(table.target, start)
    f = np.add.reduceat(table.nontarget, start)
    llr = bin_llr(t, f, table.n_target, table.n_nontarget)
    return PavBins(table.values[start], table.values[stop - 1], t, f, llr, table.n_target, table.n_nontarget)


def smooth(bins: PavBins, rule: str = "zebra") -> PavBins:
    """Return bins whose LLRs are made finite by ``rule`` (see the module docstring).

    Under ``zebra`` the counts include the pseudo-labels; under the other rules they do not.
    """
    if rule == "none":
        return bins
    if rule == "zebra":
        return _smooth_zebra(bins)
    if rule == "pure-bins":
        changed = (bins.target == 0) | (bins.nontarget == 0)
    elif rule == "end-bins":
        changed = np.zeros(bins.llr.size, dtype=np.bool_)
        changed[[0, -1]] = True
    elif rule == "all-bins":
        changed = np.ones(bins.llr.size, dtype=np.bool_)
    else:
        raise ValueError(f"rule must be one of {', '.join(PAV_RULES)}; got {rule!r}")
    pseudo = bin_llr(bins.target + 1, bins.nontarget + 1, bins.n_target, bins.n_nontarget)
    llr = np.where(changed, pseudo, bins.llr)
    return PavBins(bins.low, bins.high, bins.target, bins.nontarget, llr, bins.n_target, bins.n_nontarget)


def _smooth_zebra(bins: PavBins) -> PavBins:
    # [target, nontarget] at one end always pools to one element of (1, 1); PAV of PAV bins equals
    # PAV of their scores, so only the bins need pooling again.
    one = np.ones(1, dtype=np.int64)
    t = np.concatenate([one, bins.target, one])
    f = np.concatenate([one, bins.nontarget, one])
    bounds = pool_counts(t, f)
    start, stop = bounds[:-1], bounds[1:]
    pooled_t, pooled_f = np.add.reduceat(t, start), np.add.reduceat(f, start)
    llr = bin_llr(pooled_t, pooled_f, bins.n_target, bins.n_nontarget)
    # Index in `bins` of the first and last real element; bins of pseudo-labels alone hold no score.
    first = np.maximum(start - 1, 0)
    last = np.minimum(stop - 2, bins.llr.size - 1)
    real = first <= last
    return PavBins(
        bins.low[first[real]],
        bins.high[last[real]],
        pooled_t[real],
        pooled_f[real],
        llr[real],
        bins.n_target,
        bins.n_nontarget,
    )
