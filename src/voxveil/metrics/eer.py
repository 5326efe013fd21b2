r"""Equal error rate (closest crossing, ROC convex hull), and TPR at a low false positive rate.

With a threshold between two distinct scores, Pmiss is the share of target trials below it and
Pfa the share of nontarget trials above it; accept-all and reject-all are operating points too.

* :func:`eer`: (Pmiss + Pfa) / 2 where \|Pmiss - Pfa\| is smallest, the lowest such threshold.
  Not clipped: above 0.5 the scores point the wrong way.
* :func:`eer_rocch`: Pmiss = Pfa on the lower convex hull of the ROC, whose vertices are the PAV
  bins (Brümmer & de Villiers, BOSARIS, 2011). Never above 0.5.

Both are fractions in [0, 1]. 0.5 does not mean that nothing leaks: scores of equal mean and
unequal variance reach it with large likelihood ratios.
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.pav import PavBins, pav

__all__ = ["FEWEST_FALSE_ALARMS", "det_points", "eer", "eer_interpolated", "eer_rocch", "tpr_at_fpr"]

#: False alarms that the trials must allow for at a false positive rate; fewer give no stable threshold.
FEWEST_FALSE_ALARMS = 10


def eer(table: CountTable) -> float:
    """Return the EER at the closest crossing, a fraction in [0, 1]."""
    miss = np.concatenate([[0], np.cumsum(table.target)])
    accepted = table.n_nontarget - np.concatenate([[0], np.cumsum(table.nontarget)])
    # Integers, so that equal distances are equal: the gap rises from -T*F to T*F.
    gap = miss * table.n_nontarget - accepted * table.n_target
    right = int(np.searchsorted(gap, 0))
    best = right
    if right > 0 and -int(gap[right - 1]) <= int(gap[right]):
        best = int(np.searchsorted(gap, gap[right - 1]))
    return float((miss[best] / table.n_target + accepted[best] / table.n_nontarget) / 2)


def eer_interpolated(table: CountTable) -> float:
    """Return Pmiss = Pfa on the linearly interpolated empirical ROC, a fraction in [0, 1]."""
    return _crossing(table)


def eer_rocch(bins: PavBins) -> float:
    """Return the EER on the ROC convex hull, a fraction in [0, 0.5].

    Args:
        bins: Unsmoothed PAV bins.
    """
    return _crossing(bins)


def tpr_at_fpr(table: CountTable, rate: float) -> float:
    """Return the share of target trials that are accepted at a low false positive rate.

    The threshold is the lowest one with at most ``rate`` of the nontarget trials above it: what an attacker
    works at who compares one voice with many (Carlini et al., "Membership inference attacks from first
    principles", 2022).

    Args:
        table: The scores.
        rate: False positive rate, in (0, 1).

    Returns:
        A fraction in [0, 1]; scores without information reach ``rate`` at most on average.
    """
    # A share such as 0.29 of 100 trials is 28.999... in floating point.
    allowed = int(np.floor(rate * table.n_nontarget + 1e-9))
    accepted = np.cumsum(table.nontarget[::-1])
    thresholds = int(np.searchsorted(accepted, allowed, side="right"))
    return float(table.target[::-1][:thresholds].sum() / table.n_target)


def _crossing(steps: CountTable | PavBins) -> float:
    miss = np.concatenate([[0], np.cumsum(steps.target)])
    accepted = steps.n_nontarget - np.concatenate([[0], np.cumsum(steps.nontarget)])
    gap = miss * steps.n_nontarget - accepted * steps.n_target
    right = int(np.searchsorted(gap, 0))
    low, high = int(gap[right - 1]), int(gap[right])
    share = -low / (high - low)
    return float((miss[right - 1] + share * (miss[right] - miss[right - 1])) / steps.n_target)


def det_points(table: CountTable, *, hull: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return (Pfa, Pmiss) at every operating point, or at the hull's vertices.

    Returns:
        Two arrays in [0, 1], from accept-all to reject-all.
    """
    source: CountTable | PavBins = pav(table) if hull else table
    miss = np.concatenate([[0], np.cumsum(source.target)]) / table.n_target
    accepted = 1 - np.concatenate([[0], np.cumsum(source.nontarget)]) / table.n_nontarget
    return accepted, miss
