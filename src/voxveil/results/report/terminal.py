"""The results of a run as plain text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from voxveil.metrics.evidence import WARNING_CODES
from voxveil.results.report.results import Attack, Summary, attacks
from voxveil.results.report.utility import utility_lines
from voxveil.results.wording import (
    EER_NOTE,
    NULL_NOTE,
    bounds_text,
    concentrated,
    concentrated_text,
    conditions,
    metric_text,
    null_envelope,
    number,
    pure_text,
    total_text,
)
from voxveil.runtime.terminal import align_columns

__all__ = ["results_table"]

_MEASURED = (
    ("eer", "EER %"),
    ("unlinkability", "unlinkability"),
    ("zebra_expected", "ZEBRA bit"),
    ("identification_rate", "identified %"),
)


def results_table(summaries: Sequence[Summary]) -> str:
    """Return privacy losses and measurements, one row per system, with intervals and warnings.

    Args:
        summaries: ``summary.json`` of each system.
    """
    parts = [
        "Promised: epsilon in nat, ∞ = nothing (utterance = largest over the tested utterances)",
        *align_columns([_promise_header(summaries), *_promised(summaries)], rule=True, indent="  "),
    ]
    for name in dict.fromkeys(conditions(attack) for _, attack in attacks(summaries)):
        chosen = [(s, a) for s, a in attacks(summaries) if conditions(a) == name]
        parts += ["", f"Measured: {name}", *_measured(chosen)]
    warned = _warned(summaries)
    if warned:
        parts += ["", "Warnings (figures in the report and in evaluate/SYSTEM/*.json):", *warned]
    parts += ["", "Is it understood?", *(f"  {line}" for line in utility_lines(summaries))]
    parts += ["", EER_NOTE, NULL_NOTE]
    return "\n".join(parts)


def _warned(summaries: Sequence[Summary]) -> list[str]:
    systems: dict[str, list[str]] = {}
    for summary, attack in attacks(summaries):
        for warning in attack["warnings"]:
            systems.setdefault(warning["code"], []).append(summary["system"])
    return [
        f"  {', '.join(dict.fromkeys(systems[code]))}: {text}"
        for code, text in WARNING_CODES.items()
        if code in systems
    ]


def _promise_header(summaries: Sequence[Summary]) -> tuple[str, ...]:
    pure = ("system", "pitch, per utterance", "content, per vector", "utterance")
    return (*pure, "zCDP: (ε, δ) of an utterance") if _concentrated(summaries) else pure


def _concentrated(summaries: Sequence[Summary]) -> bool:
    return any(concentrated(summary["promise"]["utterance"]) for summary in summaries)


def _promised(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    rows = []
    some = _concentrated(summaries)
    for summary in summaries:
        streams = summary["promise"]["streams"]
        cells = [pure_text(streams[name]) if name in streams else "-" for name in ("pitch", "content")]
        utterance = summary["promise"]["utterance"]
        extra = (concentrated_text(utterance),) if some else ()
        rows.append((summary["system"], *cells, total_text(summary), *extra))
    return rows


def _measured(chosen: Sequence[tuple[Summary, Attack]]) -> list[str]:
    rows = []
    for summary, attack in chosen:
        cells = [metric_text(attack["metrics"][name]) for name, _ in _MEASURED]
        rows.append((summary["system"], *cells, metric_text(summary["utility"]["per"])))
    nulls = [bounds_text(null_envelope([a for _, a in chosen], name)) for name, _ in _MEASURED]
    rows.append(("if nothing leaks", *nulls, ""))
    references = {attack["references"] for _, attack in chosen if attack["references"]}
    chance = " (chance " + ", ".join(number(100 / n) for n in sorted(references)) + ")" if references else ""
    header = [title + (chance if name == "identification_rate" else "") for name, title in _MEASURED]
    return align_columns([("system", *header, "PER %"), *rows], rule=True, indent="  ")
