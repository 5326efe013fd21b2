"""Bootstrap intervals over speakers, and permutations for the null distribution of a metric.

*ci95*: speakers are drawn with replacement, one draw for both sides: with w_s the times speaker s was
drawn, a target trial of s weighs w_s and a nontarget trial of s against t weighs w_s w_t. Rank metrics
resample the input speakers; the references stay.

*null95*: the identities are permuted over speakers, so every metric is read on the same scores with
labels that mean nothing. Permutations stay within groups that were compared at all (lists with
same-sex nontargets have two), and where not every pair was compared they are drawn among the pairs
that were.

Both are the 2.5 % and 97.5 % quantiles of seeded replicates. The same trials in another order give
the same intervals; only the count table of a replicate is computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from voxveil.metrics.data import CountTable, FloatArray, IntArray, ScoreSet
from voxveil.runtime.seeding import stream

__all__ = ["Interval", "SortedTrials", "bootstrap_weights", "draw_speakers", "interval", "permutations"]

_ABSENT = 1e6  # cost of pairing speakers that were never compared


@dataclass(frozen=True)
class Interval:
    """The central 95 % of replicates, or the reason why it is undefined."""

    bounds: tuple[float, float] | None
    note: str | None


def draw_speakers(generator: np.random.Generator, n_speakers: int, n_replicates: int) -> IntArray:
    """Return how often each speaker is drawn in each replicate, shape ``(R, S)``."""
    shares = np.full(n_speakers, 1 / n_speakers)
    return np.asarray(generator.multinomial(n_speakers, shares, size=n_replicates), np.int64)


def bootstrap_weights(n_speakers: int, n_replicates: int, seed: int) -> IntArray:
    """Return the draws that every metric of a score set shares, shape ``(R, S)``."""
    return draw_speakers(stream(seed, "metrics", "bootstrap", n_speakers), n_speakers, n_replicates)


def interval(replicates: FloatArray, *, scale: float = 1.0) -> Interval:
    """Return the 2.5 % and 97.5 % quantiles of the finite replicates.

    Where more than 1 in 20 replicates is undefined or unbounded there is no interval.
    """
    finite = replicates[np.isfinite(replicates)]
    lost = replicates.size - finite.size
    if replicates.size == 0 or lost > 0.05 * replicates.size:
        return Interval(None, f"no value in {lost} of {replicates.size} replicates")
    low, high = np.quantile(finite, [0.025, 0.975]) * scale
    return Interval(
        (float(low), float(high)), f"{lost} replicates without a value left out" if lost else None
    )


@dataclass(frozen=True)
class SortedTrials:
    """Trials in ascending score order with their speakers, ready to be weighted.

    Attributes:
        values: Distinct scores, shape ``(G,)``.
        first: Index of the first trial at each, shape ``(G,)``.
        is_target: Shape ``(n,)``.
        enrol: Speaker of the enrolled side, in 0..S-1, shape ``(n,)``.
        test: Speaker of the tested side, shape ``(n,)``.
        n_speakers: S.
    """

    values: FloatArray
    first: IntArray
    is_target: np.ndarray
    enrol: IntArray
    test: IntArray
    n_speakers: int

    @classmethod
    def from_scores(cls, scores: ScoreSet) -> SortedTrials:
        """Sort the trials of a score set whose speakers are known."""
        if scores.enrol_speaker is None or scores.test_speaker is None:
            raise ValueError("speakers are unknown")
        speakers, index = np.unique(
            np.concatenate([scores.enrol_speaker, scores.test_speaker]), return_inverse=True
        )
        n = scores.scores.size
        order = np.argsort(scores.scores, kind="stable")
        ordered = scores.scores[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(
            ordered[first],
            first,
            scores.is_target[order],
            index[:n][order],
            index[n:][order],
            int(speakers.size),
        )

    def resampled(self, weights: IntArray) -> CountTable:
        """Return the table of one bootstrap replicate, ``weights`` of shape ``(S,)``.

        Raises:
            UndefinedMetricError: If a class is left without a trial.
        """
        trial = weights[self.test]
        other = np.where(self.is_target, 1, weights[self.enrol])
        return self._table(trial * other, self.is_target)

    def relabelled(self, permutation: IntArray) -> CountTable:
        """Return the table where tested speaker s is held to be ``permutation[s]``.

        Raises:
            UndefinedMetricError: If a class is left without a trial.
        """
        return self._table(np.ones(self.enrol.size, dtype=np.int64), permutation[self.test] == self.enrol)

    def _table(self, weights: IntArray, is_target: np.ndarray) -> CountTable:
        target = np.where(is_target, weights, 0)
        nontarget = weights - target
        if self.first.size != target.size:
            target, nontarget = np.add.reduceat(target, self.first), np.add.reduceat(nontarget, self.first)
        return CountTable.from_counts(self.values, target, nontarget)

    def compared(self) -> np.ndarray:
        """Return which (tested, enrolled) speakers met in a trial, shape ``(S, S)``."""
        met = np.zeros((self.n_speakers, self.n_speakers), dtype=np.bool_)
        met[self.test, self.enrol] = True
        return met


def permutations(compared: np.ndarray, n_replicates: int, seed: int) -> Iterator[IntArray]:
    """Yield random permutations of speakers, restricted to pairs that were compared.

    Args:
        compared: Whether (tested, enrolled) speakers met, shape ``(S, S)``.
        n_replicates: How many.
        seed: The run's seed.
    """
    n = compared.shape[0]
    rng = stream(seed, "metrics", "null", n)
    count, label = connected_components(coo_array(compared | compared.T), directed=False)
    groups = [np.flatnonzero(label == g) for g in range(count)]
    complete = [bool(compared[np.ix_(g, g)].all()) for g in groups]
    for _ in range(n_replicates):
        result = np.arange(n)
        for group, whole in zip(groups, complete, strict=True):
            if group.size == 1:
                continue
            if whole:
                result[group] = rng.permutation(group)
            else:
                cost = rng.random((group.size, group.size)) + _ABSENT * ~compared[np.ix_(group, group)]
                result[group] = group[linear_sum_assignment(cost)[1]]
        yield result
