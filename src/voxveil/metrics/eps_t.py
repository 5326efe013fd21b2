"""Worst-case LLR when each class is modelled by a t distribution, in nat.

The largest absolute difference of the two fitted log densities over all scores; each class is
fitted by maximum likelihood with 1 <= df <= inf (:mod:`voxveil.metrics.student`). Undefined when a
class is constant, has fewer than 3 distinct values or one value in half its scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.student import StudentFit, fit_student, student_logpdf

__all__ = ["StudentPair", "eps_max_t", "fit_t"]


@dataclass(frozen=True)
class StudentPair:
    """The t distributions of the target and nontarget scores."""

    target: StudentFit
    nontarget: StudentFit

    def llr(self, scores: FloatArray) -> FloatArray:
        """Return the LLR in nat at each score."""
        t, n = self.target, self.nontarget
        result: FloatArray = student_logpdf(scores, t.inverse_df, t.loc, t.scale) - student_logpdf(
            scores, n.inverse_df, n.loc, n.scale
        )
        return result


def fit_t(table: CountTable, start: StudentPair | None = None) -> StudentPair:
    """Fit both classes.

    Args:
        table: The scores.
        start: Fits of the sample that ``table`` is a replicate of.

    Raises:
        UndefinedMetricError: Where a class cannot be fitted.
    """
    fits = []
    for name, counts in (("target", table.target), ("nontarget", table.nontarget)):
        where = counts > 0
        initial = None if start is None else getattr(start, name)
        fits.append(fit_student(table.values[where], counts[where].astype(np.float64), name, initial))
    return StudentPair(*fits)


def eps_max_t(table: CountTable, pair: StudentPair | None = None) -> float:
    """Return the largest absolute t LLR over the scores, in nat.

    Raises:
        UndefinedMetricError: Where a class cannot be fitted.
    """
    pair = pair or fit_t(table)
    last = table.values.size - 1
    at = {0, last}
    for root in _stationary_points(pair):
        index = int(np.searchsorted(table.values, root))
        at |= {min(max(index - 1, 0), last), min(index, last)}
    return float(np.abs(pair.llr(table.values[sorted(at)])).max())


def _stationary_points(pair: StudentPair) -> FloatArray:
    """Return where the derivative of the LLR vanishes: the real roots of a cubic.

    The slope of a log density is -(1 + eta) d / (s^2 + eta d^2), d = x - loc.
    """
    t, n = pair.target, pair.nontarget
    # In units in which the coefficients are near 1, else the roots lose digits.
    centre, unit = (t.loc + n.loc) / 2, max(t.scale, n.scale)
    a, b = (t.loc - centre) / unit, (n.loc - centre) / unit
    slope_t, slope_n = np.array([1.0, -a]), np.array([1.0, -b])
    bowl_t = np.array([t.inverse_df, -2 * a * t.inverse_df, t.inverse_df * a * a + (t.scale / unit) ** 2])
    bowl_n = np.array([n.inverse_df, -2 * b * n.inverse_df, n.inverse_df * b * b + (n.scale / unit) ** 2])
    cubic = np.polysub(
        (1 + t.inverse_df) * np.polymul(slope_t, bowl_n), (1 + n.inverse_df) * np.polymul(slope_n, bowl_t)
    )
    roots = np.roots(cubic)
    # A double root may come out with a small imaginary part; its neighbours are harmless candidates.
    real: FloatArray = np.sort(roots.real)
    return centre + unit * real
