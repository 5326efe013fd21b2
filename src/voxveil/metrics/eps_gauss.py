r"""Worst-case LLR when each class is modelled by a Gaussian.

.. math:: \varepsilon_{max} = \max_s \lvert \log N(s; \mu_t, \sigma_t) - \log N(s; \mu_n, \sigma_n)\rvert
          \quad\text{[nat]}

over all scores s, maximum-likelihood moments (ddof = 0). Undefined when a class has no variance.
It grows without bound with the most extreme score: a model's tail, not a measurement of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voxveil.metrics.data import CountTable, FloatArray, IntArray, UndefinedMetricError, dot

__all__ = ["GaussPair", "eps_max_gauss", "fit_gauss"]


@dataclass(frozen=True)
class GaussPair:
    """Means and standard deviations (ddof = 0) of the target and nontarget scores."""

    mean_target: float
    sd_target: float
    mean_nontarget: float
    sd_nontarget: float

    def llr(self, scores: FloatArray) -> FloatArray:
        """Return the LLR in nat at each score."""
        zt = (scores - self.mean_target) / self.sd_target
        zn = (scores - self.mean_nontarget) / self.sd_nontarget
        result: FloatArray = 0.5 * (zn * zn - zt * zt) + np.log(self.sd_nontarget / self.sd_target)
        return result


def fit_gauss(table: CountTable, ddof: int = 0) -> GaussPair:
    """Fit both classes.

    Args:
        table: The scores.
        ddof: 0 is maximum likelihood; 1 exists to tell published numbers apart.

    Raises:
        UndefinedMetricError: If a class has no variance.
    """
    mean_t, sd_t = _moments(table.values, table.target, "target", ddof)
    mean_n, sd_n = _moments(table.values, table.nontarget, "nontarget", ddof)
    return GaussPair(mean_t, sd_t, mean_n, sd_n)


def _moments(values: FloatArray, counts: IntArray, name: str, ddof: int) -> tuple[float, float]:
    where = np.flatnonzero(counts)
    if values[where[0]] == values[where[-1]]:
        raise UndefinedMetricError(f"the {name} scores have no variance")
    weights = counts.astype(np.float64)
    total = weights.sum()
    # A shift to an observed score keeps the mean of nearly equal scores exact.
    shift = float(values[where[0]])
    mean = dot(weights, values - shift) / float(total)
    centred = values - (shift + mean)
    sd = float(np.sqrt(dot(weights, centred * centred) / (total - ddof)))
    if sd == 0:
        raise UndefinedMetricError(f"the {name} scores have no variance in double precision")
    return shift + mean, sd


def eps_max_gauss(table: CountTable, pair: GaussPair | None = None) -> float:
    """Return the largest absolute Gaussian LLR over the scores, in nat.

    Raises:
        UndefinedMetricError: If a class has no variance.
    """
    pair = pair or fit_gauss(table)
    at = [0, table.values.size - 1]
    # The LLR is a parabola: between the ends its extreme is at the scores around the vertex.
    precision_t, precision_n = pair.sd_target**-2, pair.sd_nontarget**-2
    if precision_t != precision_n:
        vertex = (pair.mean_target * precision_t - pair.mean_nontarget * precision_n) / (
            precision_t - precision_n
        )
        index = int(np.searchsorted(table.values, vertex))
        at += [int(np.clip(index - 1, 0, at[1])), int(np.clip(index, 0, at[1]))]
    return float(np.abs(pair.llr(table.values[at])).max())
