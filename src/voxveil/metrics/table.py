"""The result as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxveil.metrics.names import METRICS

__all__ = ["format_result"]


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def _bounds(bounds: list[float] | None) -> str:
    return "-" if bounds is None else f"{bounds[0]:.3g} .. {bounds[1]:.3g}"


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
    header = ("metric", "value", "unit", "95 % interval", "if nothing leaks", "worse for privacy", "note")
    rows = [header]
    for name, entry in result["metrics"].items():
        about = METRICS[name]
        value = _number(entry["value"])
        note = entry["note"] or ""
        if entry["value"] is None and note.startswith("unbounded"):
            value = "unbounded"
        if "tag" in entry:
            note = f"log10 {entry['log10']:.4g}, tag {entry['tag']}" + (f"; {note}" if note else "")
        bounds = _bounds(entry["ci95"])
        if entry["ci95"] is not None and about.maximum:
            bounds += " (range)"
            note = note.replace(
                "ci95 is a range over resampled speakers, not a confidence interval", ""
            ).strip("; ")
        direction = "higher" if about.higher_is == "worse" else "lower"
        rows.append((name, value, entry["unit"], bounds, _bounds(entry["null95"]), direction, note))
    widths = [max(len(row[i]) for row in rows) for i in range(len(header) - 1)]
    for row in rows:
        lines.append(
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        )
    if result["warnings"]:
        lines.append("")
        lines += [f"warning {warning['code']}: {warning['text']}" for warning in result["warnings"]]
    lines += ["", "A value inside 'if nothing leaks' does not prove privacy by itself."]
    return "\n".join(lines)
