"""Differences of two measurements with interval and verdict.

An unpaired interval needs the two intervals alone. A paired one, a bootstrap of differences on the same
trials, needs the scores themselves, which are private and never stored in MLflow: only outputs on this
machine or in DVC's cache have them. What both systems find equally hard cancels, so these intervals are
narrower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.metrics import eer, linkability, zebra
from voxveil.metrics.catalogue import METRICS
from voxveil.metrics.data import CountTable, FloatArray, UndefinedMetricError
from voxveil.metrics.evaluation import read_attack
from voxveil.metrics.intervals import SortedTrials, bootstrap_weights, interval
from voxveil.metrics.pav import pav
from voxveil.metrics.ranks import rank_inputs, speaker_histograms
from voxveil.metrics.score_files import Evaluation, read_npz
from voxveil.metrics.suite import rank_values
from voxveil.runtime.errors import VoxveilError

__all__ = [
    "Difference",
    "NotPairedError",
    "Scored",
    "compare_entries",
    "paired_intervals",
    "read_scored",
    "unpaired_interval",
]

#: Utility metrics, all of them rates of errors: higher is worse.
#: Utility by name in a summary: is a higher value worse?
_UTILITY = {"per": True, "wer": True, "pitch": False}


@dataclass(frozen=True)
class Difference:
    """Second minus first, in the unit of the metric.

    Attributes:
        value: None where a side has no number.
        interval: 95 %, None where there is none.
        method: ``paired``, ``unpaired`` or empty.
        verdict: ``within noise``, ``higher``, ``lower``, ``equal`` or ``not judged``.
        meaning: ``better``, ``worse`` or empty.
        note: Why nothing is judged, or what else must be known.
    """

    value: float | None
    interval: tuple[float, float] | None
    method: str
    verdict: str
    meaning: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {
            "value": self.value,
            "interval95": None if self.interval is None else list(self.interval),
            "method": self.method,
            "verdict": self.verdict,
            "meaning": self.meaning,
            "note": self.note,
        }


def unpaired_interval(
    first: float, first_ci: Sequence[float], second: float, second_ci: Sequence[float]
) -> tuple[float, float]:
    """Return the 95 % interval of ``second - first`` of two independent measurements.

    The method of variance estimates recovery (Zou and Donner 2008, Statistics in Medicine 27(10), eq. 1):
    each limit recovers the variance on its own side, so skewed intervals stay skewed. Where both share
    speakers their errors usually rise and fall together, and the interval is wider than it need be.

    Args:
        first: Value of the first.
        first_ci: Its (low, high).
        second: Value of the second.
        second_ci: Its (low, high).
    """
    # A bootstrap quantile may lie on the other side of the value itself.
    first_down, first_up = max(0.0, first - first_ci[0]), max(0.0, first_ci[1] - first)
    second_down, second_up = max(0.0, second - second_ci[0]), max(0.0, second_ci[1] - second)
    difference = second - first
    return difference - math.hypot(second_down, first_up), difference + math.hypot(second_up, first_down)


def compare_entries(
    name: str,
    first: Mapping[str, Any] | None,
    second: Mapping[str, Any] | None,
    paired: tuple[float, float] | None = None,
) -> Difference:
    """Return the difference of two entries of the JSON contract (``value``, ``ci95``, ``null95``).

    Args:
        name: Metric.
        first: Entry of the first run, None where it was not measured.
        second: Entry of the second.
        paired: Interval of the difference on the same trials, where it could be computed.
    """
    if first is None or second is None:
        return Difference(None, None, "", "not judged", note="not measured in both")
    a, b = first["value"], second["value"]
    if a is None or b is None:
        return Difference(None, None, "", "not judged", note=_no_number(first, second))
    value = float(b) - float(a)
    if name in METRICS and METRICS[name].maximum:
        note = "a maximum"
        return Difference(value, None, "", "not judged", note=note)
    interval, method = paired, "paired"
    if interval is None:
        if not first.get("ci95") or not second.get("ci95"):
            return Difference(value, None, "", "not judged", note="no interval in both")
        interval, method = unpaired_interval(a, first["ci95"], b, second["ci95"]), "unpaired"
    note = "both read as if nothing leaks" if _in_null(first) and _in_null(second) else ""
    if interval[0] <= 0 <= interval[1]:
        return Difference(value, interval, method, "within noise", note=note)
    verdict = "higher" if value > 0 else "lower"
    return Difference(value, interval, method, verdict, _meaning(name, value), note)


def _meaning(name: str, value: float) -> str:
    worse = _UTILITY[name] if name in _UTILITY else METRICS[name].higher_is == "worse"
    return "worse" if (value > 0) == worse else "better"


def _in_null(entry: Mapping[str, Any]) -> bool:
    null = entry.get("null95")
    return null is not None and bool(null[0] <= entry["value"] <= null[1])


def _no_number(*entries: Mapping[str, Any]) -> str:
    notes = [str(e.get("note") or e.get("reason") or "undefined") for e in entries if e["value"] is None]
    return "unbounded" if any(note.startswith("unbounded") for note in notes) else "undefined"


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


@dataclass(frozen=True)
class Scored:
    """The scores of one attack.

    Attributes:
        folder: ``ATTACKER/SCENARIO`` of a score output.
        data: What it holds.
    """

    folder: Path
    data: Evaluation

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
    return Scored(folder, read_attack(folder))


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
