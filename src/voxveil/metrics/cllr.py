r"""Cllr, the cost of log-likelihood ratios averaged over all decision thresholds, in bit.

.. math:: C_{llr} = \tfrac12\,\overline{\log_2(1 + e^{-\mathrm{LLR}})}_{\text{target}}
                  + \tfrac12\,\overline{\log_2(1 + e^{\mathrm{LLR}})}_{\text{nontarget}}

0 is perfect recognition, 1 is what a system that always says LLR = 0 pays; badly calibrated
scores pay more. ``cllr`` takes the scores as natural-log LLRs and means something only if they
are; ``cllr_min`` uses the unsmoothed PAV LLRs, so it is in [0, 1] and blind to calibration
(Brümmer & du Preez, 2006).
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import CountTable, dot
from voxveil.metrics.pav import PavBins

__all__ = ["cllr", "cllr_min"]


def cllr(table: CountTable) -> float:
    """Return Cllr in bit of scores that are natural-log LLRs."""
    target = dot(table.target, np.logaddexp(0.0, -table.values)) / table.n_target
    nontarget = dot(table.nontarget, np.logaddexp(0.0, table.values)) / table.n_nontarget
    return float((target + nontarget) / (2 * np.log(2)))


def cllr_min(bins: PavBins) -> float:
    """Return Cllr in bit of the unsmoothed PAV LLRs, in [0, 1]."""
    t, n = bins.target > 0, bins.nontarget > 0
    target = bins.target[t] @ np.logaddexp(0.0, -bins.llr[t]) / bins.n_target
    nontarget = bins.nontarget[n] @ np.logaddexp(0.0, bins.llr[n]) / bins.n_nontarget
    return min(1.0, float((target + nontarget) / (2 * np.log(2))))
