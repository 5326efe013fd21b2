"""Paired bootstrap intervals of differences on the same trials.

Needs the scores themselves, which are private and never stand in MLflow: only outputs on this machine
or in DVC's cache have them. What both systems find equally hard cancels, so these intervals are narrower.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from voxveil.metrics import eer, linkability, zebra
from voxveil.metrics.data import CountTable, FloatArray, UndefinedMetricError
from voxveil.metrics.evaluation import read_evaluation
from voxveil.metrics.intervals import SortedTrials, bootstrap_weights, interval
from voxveil.metrics.pav import pav
from voxveil.metrics.ranks import rank_inputs, speaker_histograms
from voxveil.metrics.score_files import Evaluation, read_npz
from voxveil.metrics.suite import rank_values
from voxveil.runtime.errors import VoxveilError

__all__ = ["NotPairedError", "Scored", "paired_intervals", "read_scored"]

#: Seed of the draws: equal trials, equal draws.
_SEED = 0
_TRIAL: dict[str, Callable[[CountTable], float]] = {
    "eer": lambda table: 100 * eer.eer(table),
    "unlinkability": lambda table: 1 - linkability.linkability(table),
    "zebra_expected": lambda table: zebra.expected_disclosure(pav(table)),
}
_RANK = ("identification_rate", "rank_mean")
_SAME = ("trials.txt", "utt2spk", "enrol.scp")


class NotPairedError(VoxveilError):
    """Two attacks cannot be paired; the message has the reason, without names of speakers."""


class Scored:
    """The scores of one attack.

    Attributes:
        folder: ``ATTACKER/SCENARIO`` of a score output.
        data: What it holds.
    """

    def __init__(self, folder: Path, data: Evaluation) -> None:
        self.folder = folder
        self.data = data

    def values(self) -> dict[str, float]:
        """Return the metrics that can be paired; an undefined one is absent."""
        found = {}
        for name, metric in _TRIAL.items():
            value = _defined(metric, self.data.scores.table())
            if np.isfinite(value):
                found[name] = value
        if self.data.ranks is not None:
            arrays = rank_values(rank_inputs(self.data.ranks).histogram()[None])[0]
            found.update({name: float(arrays[name][0]) for name in _RANK})
        return found


def read_scored(folder: Path) -> Scored:
    """Read the scores of one attack.

    Raises:
        NotPairedError: They are not there.
        InputError: They are damaged.
    """
    if not (folder / "scores.txt").is_file():
        raise NotPairedError("the scores of both are needed, and they are private: not in MLflow")
    data = read_evaluation(
        folder / "scores.txt",
        folder / "trials.txt",
        rank=folder / "rank.npz",
        utt2spk=folder / "utt2spk",
        enrolments=folder / "enrol.scp",
    )
    return Scored(folder, data)


def paired_intervals(first: Scored, second: Scored, replicates: int) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of ``second - first`` by metric, from one bootstrap over speakers.

    Weights as in :mod:`voxveil.metrics.intervals`; each draw is applied to both before the difference.

    Raises:
        NotPairedError: The trials are not the same, or speakers are unknown.
    """
    for name in _SAME:
        if (first.folder / name).read_bytes() != (second.folder / name).read_bytes():
            raise NotPairedError(f"the trials are not the same ({name} differs)")
    a, b = first.data.scores, second.data.scores
    if a.n_speakers is None or a.n_speakers < 2:
        raise NotPairedError("intervals need at least 2 known speakers")
    sides = SortedTrials.from_scores(a), SortedTrials.from_scores(b)
    rows: dict[str, list[float]] = {name: [] for name in _TRIAL}
    for weights in bootstrap_weights(sides[0].n_speakers, replicates, _SEED):
        tables = [_resampled(side, weights) for side in sides]
        for name, metric in _TRIAL.items():
            values = [np.nan if table is None else _defined(metric, table) for table in tables]
            rows[name].append(values[1] - values[0])
    found = {name: np.array(values) for name, values in rows.items()}
    found.update(_rank_differences(first, second, replicates))
    bounds = {name: interval(values).bounds for name, values in found.items()}
    return {name: limits for name, limits in bounds.items() if limits is not None}


def _rank_differences(first: Scored, second: Scored, replicates: int) -> dict[str, FloatArray]:
    a, b = first.data.ranks, second.data.ranks
    if a is None or b is None:
        return {}
    names = [read_npz(side.folder / "rank.npz").get("inputs") for side in (first, second)]
    same = names[0] is not None and names[1] is not None and np.array_equal(names[0], names[1])
    if not same or a.speakers != b.speakers or not np.array_equal(a.speaker_index, b.speaker_index):
        return {}
    speakers, histograms = speaker_histograms(rank_inputs(a))
    weights = bootstrap_weights(speakers.size, replicates, _SEED)
    others = speaker_histograms(rank_inputs(b))[1]
    values = [rank_values(weights @ side)[0] for side in (histograms, others)]
    return {name: values[1][name] - values[0][name] for name in _RANK}


def _resampled(side: SortedTrials, weights: np.ndarray) -> CountTable | None:
    try:
        return side.resampled(weights)
    except UndefinedMetricError:
        return None


def _defined(metric: Callable[[CountTable], float], table: CountTable) -> float:
    try:
        return float(metric(table))
    except UndefinedMetricError:
        return float("nan")
