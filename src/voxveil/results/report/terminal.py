"""The results of a run as plain text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from voxveil.metrics.evidence import WARNING_CODES
from voxveil.results.report.results import Attack, Summary, attacks, warnings_by_code, words_alone
from voxveil.results.report.utility import utility_lines
from voxveil.results.wording import (
    EER_NOTE,
    NULL_NOTE,
    WORDS_NOTE,
    any_concentrated,
    bounds_text,
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
    ("tpr_fpr1", "TPR % at FPR 1 %"),
    ("tpr_fpr01", "at FPR 0.1 %"),
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
        *align_columns(_promised(summaries), rule=True, indent="  "),
    ]
    for name in dict.fromkeys(conditions(attack) for _, attack in attacks(summaries)):
        chosen = [(s, a) for s, a in attacks(summaries) if conditions(a) == name]
        parts += ["", f"Measured: {name}", *_measured(chosen, words_alone(summaries))]
    warned = _warned(summaries)
    if warned:
        parts += ["", "Warnings (figures in the report and in evaluate/SYSTEM/*.json):", *warned]
    parts += ["", "Is it understood?", *(f"  {line}" for line in utility_lines(summaries))]
    parts += ["", EER_NOTE, NULL_NOTE, *([WORDS_NOTE] if words_alone(summaries) else [])]
    return "\n".join(parts)


def _warned(summaries: Sequence[Summary]) -> list[str]:
    return [
        f"  {', '.join(dict.fromkeys(system for system, _ in warned))}: {WARNING_CODES[code]}"
        for code, warned in warnings_by_code(summaries).items()
    ]


def _promised(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    """Return the rows of the table of privacy losses, its header first."""
    some = any_concentrated(summaries)
    pure = ("system", "pitch, per utterance", "content, per vector", "utterance")
    rows: list[tuple[str, ...]] = [(*pure, "zCDP: (ε, δ) of an utterance") if some else pure]
    for summary in summaries:
        streams = summary["promise"]["streams"]
        cells = [pure_text(streams[name]) if name in streams else "-" for name in ("pitch", "content")]
        utterance = summary["promise"]["utterance"]
        extra = (concentrated_text(utterance),) if some else ()
        rows.append((summary["system"], *cells, total_text(summary), *extra))
    return rows


def _measured(chosen: Sequence[tuple[Summary, Attack]], words: Attack | None) -> list[str]:
    rows = []
    for summary, attack in chosen:
        cells = [metric_text(attack["metrics"][name]) for name, _ in _MEASURED]
        rows.append((summary["system"], *cells, metric_text(summary["utility"]["per"])))
    nulls = [bounds_text(null_envelope([a for _, a in chosen], name)) for name, _ in _MEASURED]
    if words:
        rows.append(("the words alone", *(metric_text(words["metrics"][name]) for name, _ in _MEASURED), ""))
    rows.append(("if nothing leaks", *nulls, ""))
    references = {attack["references"] for _, attack in chosen if attack["references"]}
    chance = " (chance " + ", ".join(number(100 / n) for n in sorted(references)) + ")" if references else ""
    header = [title + (chance if name == "identification_rate" else "") for name, title in _MEASURED]
    return align_columns([("system", *header, "PER %"), *rows], rule=True, indent="  ")
