r"""Worst-case LLR when each class is modelled by a t distribution, in nat, and the fit of that distribution.

The largest absolute difference of the two fitted log densities over all scores; each class is
fitted by maximum likelihood with 1 <= df <= inf. Undefined when a class is constant, has fewer than 3
distinct values or one value in half its scores.

The fit is that of the location-scale t distribution, the normal distribution included. With
:math:`\eta = 1/\nu` in [0, 1] (one degree of freedom to the normal), z = (x - mu)/sigma:

.. math:: \log p = c(\eta) - \log\sigma - \frac{1+\eta}{2\eta}\log(1 + \eta z^2)

The parametrization by :math:`\eta` is smooth at 0, so the normal is an ordinary point on the
boundary and near-normal data do not stop at an arbitrary df. The lower bound on df keeps the
likelihood finite for tied scores. scipy.stats.t.fit has neither and stops short of the maximum.

The fit climbs from several :math:`\eta` on grouped data (thousands of points) and then on all scores, by
Newton steps whose gradient is exact and whose Hessian comes from the groups, so that it ends at the
maximum of all scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from voxveil.metrics.data import CountTable, FloatArray, UndefinedMetricError, dot

__all__ = ["StudentFit", "StudentPair", "eps_max_t", "fit_student", "fit_t", "student_logpdf"]


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


_GROUPS = 4096
# (log scale, eta); the narrow ones find the cluster that a few scores or two modes make
_STARTS = ((0.0, 0.0), (0.0, 0.05), (0.0, 0.3), (0.0, 0.9), (-1.5, 1.0), (-3.0, 1.0))
_GRADIENT = 1e-9  # of the mean log likelihood, scores in units of their quartile range
_SERIES_BELOW = 0.005  # eta under which c(eta) is a series (gammaln would cancel)


@dataclass(frozen=True)
class StudentFit:
    """A fitted t distribution; ``inverse_df`` 0 is the normal."""

    inverse_df: float
    loc: float
    scale: float
    nll: float

    @property
    def df(self) -> float:
        """Degrees of freedom, infinite for the normal."""
        return 1 / self.inverse_df if self.inverse_df > 0 else float("inf")


def student_logpdf(x: FloatArray, inverse_df: float, loc: float, scale: float) -> FloatArray:
    """Return the natural log density at each x."""
    z2 = ((x - loc) / scale) ** 2
    if inverse_df == 0:
        tail = 0.5 * z2
    else:
        tail = np.log1p(inverse_df * z2)
        tail *= (1 + inverse_df) / (2 * inverse_df)
    result: FloatArray = _constant(inverse_df) - np.log(scale) - tail
    return result


def fit_student(x: FloatArray, weights: FloatArray, name: str, start: StudentFit | None = None) -> StudentFit:
    """Fit one class by maximum likelihood with 1 <= df <= inf.

    Args:
        x: Distinct scores, ascending, shape ``(n,)``.
        weights: Trials at each, all positive, shape ``(n,)``.
        name: Class name for the reason.
        start: A nearby fit (of the sample a replicate is drawn from): skips the search over df.

    Raises:
        UndefinedMetricError: With fewer than 3 distinct scores, or one score in half the trials.
    """
    if x.size < 3:
        raise UndefinedMetricError(f"the {name} scores have {x.size} distinct values; a t fit needs 3")
    total = float(weights.sum())
    if 2 * float(weights.max()) >= total:
        raise UndefinedMetricError(
            f"one value stands in half of the {name} scores: the t likelihood has no maximum"
        )
    centre, spread = _quartile_frame(x, weights)
    u, w = (x - centre) / spread, weights / total
    groups_u, groups_w = _group(u, w)
    if start is None:
        starts = [np.array([0.0, log_scale, eta]) for log_scale, eta in _STARTS]
    else:
        initial = (start.loc - centre) / spread, float(np.log(start.scale / spread)), start.inverse_df
        starts = [np.array(initial)]
    climbed = [_climb(theta, groups_u, groups_w, groups_u, groups_w) for theta in starts]
    theta = min(climbed, key=lambda found: found[1])[0]
    theta, nll = _climb(theta, u, w, groups_u, groups_w)
    return StudentFit(
        float(theta[2]),
        centre + spread * float(theta[0]),
        spread * float(np.exp(theta[1])),
        total * (nll + float(np.log(spread))),
    )


def _quartile_frame(x: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return a centre and a positive unit of length: the quartiles', else the extremes'."""
    share = np.cumsum(weights) / weights.sum()
    quartiles = x[np.minimum(np.searchsorted(share, [0.25, 0.5, 0.75]), x.size - 1)]
    unit = float(quartiles[2] - quartiles[0]) / 1.35
    return float(quartiles[1]), unit if unit > 0 else float(x[-1] - x[0]) / 2


def _group(u: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return at most about _GROUPS points: tail scores singly, the middle by group means."""
    if u.size <= _GROUPS:
        return u, w
    tail = _GROUPS // 8
    cuts = np.linspace(tail, u.size - tail, _GROUPS - 2 * tail + 1).astype(np.int64)[:-1]
    first = np.concatenate([np.arange(tail), cuts, np.arange(u.size - tail, u.size)])
    weight = np.add.reduceat(w, first)
    return np.add.reduceat(w * u, first) / weight, weight


def _nll_and_gradient(theta: FloatArray, u: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
    """Return the mean negative log likelihood and its gradient in (loc, log scale, eta)."""
    loc, log_scale, eta = (float(v) for v in theta)
    scale = np.exp(log_scale)
    z = (u - loc) / scale
    z2 = z * z
    y = eta * z2
    inner = z2 / (1 + y)
    pull = dot(w, z / (1 + y))
    mean_inner = dot(w, inner)
    grad = np.empty(3)
    grad[0] = -(1 + eta) * pull / scale
    grad[1] = 1 - (1 + eta) * mean_inner
    if eta > 0:
        log_term = np.log1p(y)
        tail = (1 + eta) / (2 * eta) * dot(w, log_term)
        # [log(1+y) - y/(1+y)] / (2 eta^2): a series where y is small and the difference cancels
        y_small = np.minimum(y, 0.02)
        series = (
            z2
            * z2
            * (
                0.5
                + y_small
                * (-2 / 3 + y_small * (0.75 + y_small * (-0.8 + y_small * (5 / 6 - y_small * 6 / 7))))
            )
        )
        direct = (log_term - y / (1 + y)) / max(eta * eta, np.finfo(np.float64).tiny)
        curve = 0.5 * dot(w, np.where(y < 0.02, series, direct))
    else:
        tail = 0.5 * dot(w, z2)
        curve = 0.25 * dot(w, z2 * z2)
    grad[2] = -(_constant_slope(eta) + curve - 0.5 * mean_inner)
    return float(log_scale + tail - _constant(eta)), grad


def _climb(
    theta: FloatArray, u: FloatArray, w: FloatArray, hessian_u: FloatArray, hessian_w: FloatArray
) -> tuple[FloatArray, float]:
    """Return the local maximum from ``theta`` and its mean negative log likelihood.

    Newton steps with eta kept in [0, 1]. Gradients are of ``u``; Hessians come from ``hessian_u``, which
    stands for it where ``u`` is large. A Hessian that is not positive definite is made so.
    """
    value, grad = _nll_and_gradient(theta, u, w)
    for _ in range(200):
        pinned = (theta[2] <= 0 and grad[2] > 0) or (theta[2] >= 1 and grad[2] < 0)
        free = 2 if pinned else 3
        if np.abs(grad[:free]).max() < _GRADIENT:
            break
        curvature, axes = np.linalg.eigh(_hessian(theta, hessian_u, hessian_w)[:free, :free])
        curvature = np.maximum(np.abs(curvature), 1e-4 * np.abs(curvature).max())
        step = np.zeros(3)
        step[:free] = -axes @ ((axes.T @ grad[:free]) / curvature)
        step /= max(1.0, float(np.abs(step[:2]).max()), float(abs(step[2])) / 0.3)
        for _ in range(40):
            moved = theta + step
            moved[2] = min(max(moved[2], 0.0), 1.0)
            new_value, new_grad = _nll_and_gradient(moved, u, w)
            if new_value < value:
                break
            step /= 2
        else:
            break
        theta, value, grad = moved, new_value, new_grad
    return theta, value


def _hessian(theta: FloatArray, u: FloatArray, w: FloatArray) -> FloatArray:
    """Return the Hessian of the mean negative log likelihood by differences of its gradient."""
    at = _nll_and_gradient(theta, u, w)[1]
    hessian = np.empty((3, 3))
    for i in range(3):
        # eta's step goes inwards, so that neither bound is crossed.
        step = 1e-5 if i < 2 or theta[2] < 0.5 else -1e-5
        moved = theta.copy()
        moved[i] += step
        hessian[i] = (_nll_and_gradient(moved, u, w)[1] - at) / step
    return (hessian + hessian.T) / 2


def _constant(eta: float) -> float:
    """Return log of Gamma((nu+1)/2) / (Gamma(nu/2) sqrt(nu pi))."""
    if eta < _SERIES_BELOW:
        return float(-0.5 * np.log(2 * np.pi) - eta / 4 + eta**3 / 24 - eta**5 / 20)
    nu = 1 / eta
    return float(gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi))


def _constant_slope(eta: float) -> float:
    if eta < _SERIES_BELOW:
        return -0.25 + eta**2 / 8 - eta**4 / 4
    nu = 1 / eta
    return float(-nu * nu * 0.5 * (digamma((nu + 1) / 2) - digamma(nu / 2) - eta))
