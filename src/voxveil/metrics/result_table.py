"""The result of one evaluation as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxveil.metrics.catalogue import METRICS
from voxveil.runtime.terminal import align_columns

__all__ = ["format_result"]

_HEADER = ("metric", "value", "unit", "95 % interval", "if nothing leaks", "worse if", "note")
_RANGE = "ci95 is a range over resampled speakers, not a confidence interval"
_NO_INTERVALS = "no intervals: "


def format_result(result: Mapping[str, Any]) -> str:
    """Return trials, metrics and warnings as lines of text.

    Args:
        result: The JSON contract of :func:`voxveil.metrics.suite.evaluate_scores`.
    """
    trials = result["trials"]
    speakers = "unknown" if trials["speakers"] is None else trials["speakers"]
    lines = [
        f"{trials['target']} target trials, {trials['nontarget']} nontarget trials, speakers: {speakers}",
        "",
    ]
    rows = [_HEADER]
    undefined: dict[str, list[str]] = {}
    reasons: dict[str, None] = {}
    for name, entry in result["metrics"].items():
        notes = [part for part in (entry["note"] or "").split("; ") if part and part != _RANGE]
        reasons |= dict.fromkeys(part for part in notes if part.startswith(_NO_INTERVALS))
        notes = [part for part in notes if not part.startswith(_NO_INTERVALS)]
        unbounded = bool(notes) and notes[0].startswith("unbounded")
        if entry["value"] is None and not unbounded:
            undefined.setdefault("; ".join(notes), []).append(name)
            continue
        if "tag" in entry:
            notes.insert(0, f"log10 {entry['log10']:.4g}, tag {entry['tag']}")
        value = "unbounded" if unbounded else f"{entry['value']:.4g}"
        bounds = _bounds(entry["ci95"])
        if entry["ci95"] is not None and METRICS[name].maximum:
            bounds += " (range)"
        direction = "high" if METRICS[name].higher_is == "worse" else "low"
        rows.append(
            (name, value, entry["unit"], bounds, _bounds(entry["null95"]), direction, "; ".join(notes))
        )
    lines += [*align_columns(rows), ""]
    lines += list(reasons)
    lines += [f"undefined: {', '.join(names)}: {reason}" for reason, names in undefined.items()]
    lines += [f"warning {warning['code']}: {warning['text']}" for warning in result["warnings"]]
    lines.append("A value inside 'if nothing leaks' does not prove privacy by itself.")
    return "\n".join(lines)


def _bounds(bounds: list[float] | None) -> str:
    return "-" if bounds is None else f"{bounds[0]:.3g} .. {bounds[1]:.3g}"
