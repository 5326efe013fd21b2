"""Lower confidence bound of epsilon from two samples of released values.

If a release is epsilon-DP, no event is more than e^epsilon times as likely under one of two
neighbours as under the other; if it is (epsilon, delta)-DP, once delta is taken off. An event (values
beyond a threshold) is chosen on one half of the data; on the other half its two probabilities get exact
one-sided bounds (Clopper and Pearson 1934) that share alpha. The logarithm of their ratio is below epsilon
with confidence 1 - alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError

__all__ = ["ALPHA", "Event", "choose_event", "clopper_pearson", "largest_bound", "ratio_bound"]

#: Chance of accusing a right mechanism.
ALPHA = 1e-4
_THRESHOLDS = 400

Sample = NDArray[np.float64]


@dataclass(frozen=True)
class Event:
    """Values at or above (or below) a threshold, with the sample in which it is more likely.

    Attributes:
        threshold: Where it begins.
        above: ``value >= threshold``, else ``value < threshold``.
        first: More likely under the first sample.
    """

    threshold: float
    above: bool
    first: bool

    def count(self, values: Sample) -> int:
        """Return how many values it holds."""
        inside = values >= self.threshold if self.above else values < self.threshold
        return int(inside.sum())


def choose_event(first: Sample, second: Sample, alpha: float = ALPHA, delta: float = 0.0) -> Event:
    """Return the event with the largest :func:`ratio_bound` on these samples.

    Args:
        first: (n,) released under one neighbour.
        second: (m,) released under the other.
        alpha: As in the test to come.
        delta: Likewise.
    """
    ordered = [np.sort(first), np.sort(second)]
    steps = np.linspace(0.0, 1.0, _THRESHOLDS)
    thresholds = np.unique(
        np.concatenate([np.quantile(sample, steps, method="higher") for sample in ordered])
    )
    below = [np.searchsorted(sample, thresholds, side="left") for sample in ordered]
    best, chosen = -math.inf, Event(float(thresholds[0]), True, True)
    for above in (True, False):
        counts = [len(s) - b if above else b for s, b in zip(ordered, below, strict=True)]
        for likely in (0, 1):
            other = 1 - likely
            sizes = len(ordered[likely]), len(ordered[other])
            bounds = _bound(counts[likely], counts[other], sizes, alpha, delta)
            index = int(np.argmax(bounds))
            if bounds[index] > best:
                best = float(bounds[index])
                chosen = Event(float(thresholds[index]), above, likely == 0)
    return chosen


def ratio_bound(
    first: Sample, second: Sample, event: Event, alpha: float = ALPHA, delta: float = 0.0
) -> float:
    """Return the lower bound of the log ratio of the event's probabilities, in nat; may be negative.

    Args:
        first: (n,) independent of the choice of the event.
        second: (m,) likewise.
        event: The event.
        alpha: Shared by the two sides.
        delta: Of the claim, taken off the probability of the likelier side.
    """
    likely, other = (first, second) if event.first else (second, first)
    hits, alarms = np.array([event.count(likely)]), np.array([event.count(other)])
    return float(_bound(hits, alarms, (len(likely), len(other)), alpha, delta)[0])


def largest_bound(trials: int, alpha: float = ALPHA, delta: float = 0.0) -> float:
    """Return the largest bound that ``trials`` a side can give: no larger epsilon can be refuted."""
    if trials < 1:
        raise InputError(f"an audit needs at least one trial, got {trials}")
    return float(_bound(np.array([trials]), np.array([0]), (trials, trials), alpha, delta)[0])


def clopper_pearson(hits: Any, trials: Any, side: float) -> tuple[Sample, Sample]:
    """Return the exact bounds of a probability (Clopper and Pearson 1934), elementwise.

    Args:
        hits: In [0, trials]; need not be whole: dependent trials count as an effective number of them.
        trials: Above 0.
        side: Chance that the probability lies below the lower bound, and that it lies above the upper one.

    Returns:
        (lower, upper) in [0, 1]: 0 without a hit, 1 where every trial is one.
    """
    from scipy.special import betaincinv

    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(trials, np.float64))
    some, few = np.where(k > 0, k, n), np.where(k < n, k, 0.0)
    low = np.where(k > 0, betaincinv(some, n - some + 1, side), 0.0)
    return low, np.where(k < n, betaincinv(few + 1, n - few, 1 - side), 1.0)


def _bound(
    hits: NDArray[Any], alarms: NDArray[Any], sizes: tuple[int, int], alpha: float, delta: float
) -> Sample:
    """Return the lower bound of the log ratio of the probabilities behind two counts out of ``sizes``."""
    low = clopper_pearson(hits, sizes[0], alpha / 2)[0]
    high = clopper_pearson(alarms, sizes[1], alpha / 2)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high), np.float64)
