"""Differences of two measurements with interval and verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voxveil.metrics.catalogue import METRICS

__all__ = ["Difference", "compare_entries", "unpaired_interval"]

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
