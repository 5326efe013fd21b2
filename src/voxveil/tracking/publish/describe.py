"""Descriptions of runs in Markdown, shown by MLflow above their numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from voxveil.results.report.results import Summary, attacks, words_alone
from voxveil.results.report.utility import verdict
from voxveil.results.wording import (
    EER_NOTE,
    NULL_NOTE,
    SYNTHETIC_NOTE,
    WORDS_NOTE,
    bounds_text,
    concentrated,
    concentrated_text,
    conditions,
    loss_text,
    metric_text,
    null_envelope,
    plain_promise,
    pure_text,
)

__all__ = ["describe_run", "describe_system", "link_line"]

#: What people look for among a run's artifacts, in the order of its links.
_LINKED = {
    "report/index.html": "Report, with audio where the corpus is public",
    "evaluate/losses.json": "Ledger, without names",
    "report/params.json": "Parameters",
}
_COLUMNS = (
    ("eer", "EER %"),
    ("unlinkability", "unlinkability"),
    ("zebra_expected", "ZEBRA bit"),
    ("identification_rate", "identified %"),
)


def describe_run(summaries: Sequence[Summary]) -> str:
    """Return the results of all systems as a Markdown table with its conditions."""
    some = any(concentrated(summary["promise"]["utterance"]) for summary in summaries)
    extra = ["zCDP: (ε, δ) of an utterance"] if some else []
    header = ["system", "ε of an utterance", *extra, "attack", *(title for _, title in _COLUMNS), "PER %"]
    rows = []
    for summary, attack in attacks(summaries):
        cells = [metric_text(attack["metrics"][name]) for name, _ in _COLUMNS]
        utterance = summary["promise"]["utterance"]
        promised = [pure_text(utterance), *([concentrated_text(utterance)] if some else [])]
        rows.append(
            [summary["system"], *promised, conditions(attack), *cells, metric_text(summary["utility"]["per"])]
        )
    everyone = [attack for _, attack in attacks(summaries)]
    nulls = [bounds_text(null_envelope(everyone, name)) for name, _ in _COLUMNS]
    words = words_alone(summaries)
    if words:
        found = [metric_text(words["metrics"][name]) for name, _ in _COLUMNS]
        rows.append(["the words alone", "", *("" for _ in extra), "", *found, ""])
    rows.append(["if nothing leaks", "", *("" for _ in extra), "", *nulls, ""])
    lines = [_row(header), _row(["---"] * len(header)), *(_row(row) for row in rows)]
    return "\n".join(
        [*_synthetic(summaries[0]), *lines, "", EER_NOTE, "", NULL_NOTE, *(["", WORDS_NOTE] if words else [])]
    )


def describe_system(summary: Summary) -> str:
    """Return one system's promise, attacks and warnings in Markdown."""
    lines = [*_synthetic(summary), f"**{summary['system']}**: {plain_promise(summary)}", ""]
    lines += [f"- ε of {name}: {loss_text(loss)}" for name, loss in summary["promise"]["streams"].items()]
    lines += ["", *(f"- attack: {conditions(attack)}" for attack in summary["attacks"])]
    lines += [f"- {verdict(summary)}"]
    lines += [f"- warning: {w['text']}" for attack in summary["attacks"] for w in attack["warnings"]]
    return "\n".join([*lines, "", EER_NOTE])


def link_line(experiment: str, run: str, artifacts: Collection[str]) -> str:
    """Return links to artifacts of a run, as MLflow's own pages address them; empty if there are none."""
    present = [(path, title) for path, title in _LINKED.items() if path in artifacts]
    return " · ".join(
        f"[{title}](#/experiments/{experiment}/runs/{run}/artifacts/{path})" for path, title in present
    )


def _synthetic(summary: Summary) -> list[str]:
    return [f"**Synthetic speech.** {SYNTHETIC_NOTE}", ""] if summary["corpus"]["synthetic"] else []


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
