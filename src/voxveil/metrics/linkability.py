r"""Global linkability D_sys (Gomez-Barrero et al., 2018; Maouche et al., 2020).

.. math:: D_{sys} = \sum_b p(b\,|\,\text{target})\,D(b), \qquad
          D(b) = \max\Bigl(0, \frac{\mathrm{LR}(b) - 1}{\mathrm{LR}(b) + 1}\Bigr)

over equal-width bins of the pooled score range, LR(b) the ratio of the two histograms, D = 1
where only targets fall (prior odds 1). 0: not linkable, 1: fully linkable.

* :func:`linkability`: the sum above over min(max(n_target // 10, 10), 100) bins: 1 for disjoint
  scores, 0 for equal lists and for constant scores, undefined below 2 targets.
* :func:`linkability_vpc`: the number in published VoicePrivacy tables: min(n_target // 10, 100)
  bins and a trapezoid over bin centres, which loses half of each end bin. Undefined where that
  gives no bin (fewer than 10 targets) or no range.
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import CountTable, FloatArray, UndefinedMetricError

__all__ = ["linkability", "linkability_vpc"]


def linkability(table: CountTable) -> float:
    """Return D_sys by its definition, a fraction in [0, 1].

    Raises:
        UndefinedMetricError: With fewer than 2 target trials.
    """
    if table.n_target < 2:
        raise UndefinedMetricError(f"{table.n_target} target trial: a distribution needs at least 2")
    if table.is_constant:
        return 0.0
    target, local, _ = _local_linkability(table, min(max(table.n_target // 10, 10), 100))
    # Counts before shares, so that disjoint scores give 1 and not a rounded 1.
    return float((target * table.n_target).round() @ local / table.n_target)


def linkability_vpc(table: CountTable) -> float:
    """Return the D_sys of published VoicePrivacy tables, a fraction in [0, 1].

    Raises:
        UndefinedMetricError: With fewer than 10 target trials or constant scores.
    """
    n_bins = min(table.n_target // 10, 100)
    if n_bins < 1:
        raise UndefinedMetricError(
            f"{table.n_target} target trials give no bin: the VPC rule needs at least 10"
        )
    if table.is_constant:
        raise UndefinedMetricError("constant scores have no range to cut into bins")
    target, local, width = _local_linkability(table, n_bins)
    product = local * target / width
    return float(np.sum((product[1:] + product[:-1]) / 2) * width)


def _local_linkability(table: CountTable, n_bins: int) -> tuple[FloatArray, FloatArray, float]:
    """Return the share of targets and D in each bin, and the bin width."""
    low, high = float(table.values[0]), float(table.values[-1])
    edges = np.linspace(low, high, n_bins + 1)
    # numpy.histogram's rule: half-open bins, the last one closed.
    cut = np.searchsorted(table.values, edges[1:-1], side="left")
    bounds = np.concatenate([[0], cut, [table.values.size]])
    target = np.diff(np.concatenate([[0], np.cumsum(table.target)])[bounds]) / table.n_target
    nontarget = np.diff(np.concatenate([[0], np.cumsum(table.nontarget)])[bounds]) / table.n_nontarget
    # max(0, (LR-1)/(LR+1)) with LR = target/nontarget, without dividing by zero.
    total = target + nontarget
    local = np.divide(np.maximum(target - nontarget, 0), total, out=np.zeros(n_bins), where=total > 0)
    return target, local, (high - low) / n_bins
