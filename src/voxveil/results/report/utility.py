"""Utility of released speech by speech recognizers: a table for the page, and verdicts as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from voxveil.results.html import html_table, terms_html, value_cell
from voxveil.results.report.results import Summary
from voxveil.results.wording import metric_text, number

__all__ = [
    "has_pitch",
    "has_words",
    "judges_of",
    "other_recognizers",
    "utility_lines",
    "utility_section",
    "verdict",
]

#: Outliers that the page names for a system; all of them stand in the transcripts.
_NAMED = 5


def has_words(summaries: Sequence[Summary]) -> bool:
    """Return whether words were recognized in this run."""
    return any(summary["utility"]["wer"] for summary in summaries)


def other_recognizers(summaries: Sequence[Summary]) -> list[str]:
    """Return the kinds of the word recognizers beside the first, in order."""
    found = [summary["utility"]["wer"] or {} for summary in summaries]
    return list(dict.fromkeys(other["kind"] for wer in found for other in wer.get("others", [])))


def has_pitch(summaries: Sequence[Summary]) -> bool:
    """Return whether the F0 of released speech was held against the original's."""
    return any(summary["utility"].get("pitch") for summary in summaries)


def judges_of(summaries: Sequence[Summary]) -> list[str]:
    """Return the judges of naturalness in this run, sorted."""
    return sorted({judge for summary in summaries for judge in summary["utility"].get("naturalness", {})})


def _outliers(summary: Summary) -> str:
    """Return the outliers of a system as text; empty where nothing was judged."""
    found = []
    for what, items in summary["utility"].get("outliers", {}).items():
        # A private corpus gives their number only.
        number_of = items if isinstance(items, int) else len(items)
        named = "" if isinstance(items, int) or not items else f": {', '.join(items[:_NAMED])}"
        more = ", ..." if named and number_of > _NAMED else ""
        found.append(f"{number_of} in {what}{named}{more}")
    return "; ".join(found)


def verdict(summary: Summary) -> str:
    """Return whether a system's speech counts as understood, and why, in one sentence."""
    wer = summary["utility"]["wer"]
    if wer is None:
        return (
            "Not shown to be intelligible: no words were recognized in this run (transcribe.words);"
            f" phone errors {metric_text(summary['utility']['per'])} %."
        )
    judged = wer["judged"]
    word = "Understood" if judged["understood"] else "Not intelligible"
    return f"{word}: {judged['because']}."


def utility_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return a line per system for the terminal."""
    if not has_words(summaries):
        return [
            "No words were recognized in this run, so no system is shown to be intelligible"
            " (phone errors above; transcribe.words: pocketsphinx counts words)."
        ]
    return [f"{summary['system']}: {verdict(summary)}" for summary in summaries]


def utility_section(summaries: Sequence[Summary]) -> str:
    """Return the section of the page."""
    opening = "<section><h2>Is it understood?</h2>\n"
    verdicts = terms_html({summary["system"]: verdict(summary) for summary in summaries})
    outliers = {summary["system"]: text for summary in summaries if (text := _outliers(summary))}
    if outliers:
        verdicts += "\n<p>Utterances far on the bad side of the median of their system (3.5 robust standard"
        verdicts += f" deviations):</p>\n{terms_html(outliers)}"
    if not has_words(summaries):
        return f"{opening}{verdicts}</section>"
    first = next(summary["utility"]["wer"] for summary in summaries if summary["utility"]["wer"])
    others = [other["recognizer"] for other in first.get("others", [])]
    rule = (
        f"{first['judged']['rule']}, judged on {', '.join(first['judged']['subsets']) or 'all speech'}."
        f" Words by {first['recognizer']}, the same for every system"
        f"{'; also by ' + ', '.join(others) if others else ''}."
        f" Normalization: {first['normalisation']}. Where a transcript was made by machine, the absolute"
        " rate means little; differences between systems do."
    )
    rule = escape(rule[:1].upper() + rule[1:])
    return f"{opening}{verdicts}\n<p>{rule}</p>\n{_by_subset(summaries)}</section>"


def _by_subset(summaries: Sequence[Summary]) -> str:
    rows = []
    for summary in summaries:
        wer = summary["utility"]["wer"]
        if wer is None:
            continue
        system, judged = escape(summary["system"]), wer["judged"]
        others = wer.get("others", [])
        for name, rate in wer["subsets"].items():
            kind = [escape(name or "all"), escape(rate["transcripts"])]
            also = [value_cell(other["subsets"][name]) for other in others]
            rows.append([system, *kind, value_cell(rate), *also, _counted(rate), str(rate["reference"])])
        permuted = [number(found["judged"]["permuted"]) for found in (wer, *others)]
        rows.append([system, "judged", "permuted", *permuted, _counted(judged), ""])
    header = ["System", "Subset", "Transcripts", "Word errors <small>%</small>"]
    header += [f"by {escape(kind)} <small>%</small>" for kind in other_recognizers(summaries)]
    header += ["Utterances", "Words"]
    return html_table("Word errors by subset, with 95 % intervals over speakers", header, rows)


def _counted(rate: Mapping[str, Any]) -> str:
    return f"{rate['utterances']} of {rate['speakers']} speakers"
