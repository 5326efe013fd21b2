"""Tables of the results page.

Also the results by sex, and the summed disclosure of all representations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from voxveil.metrics.catalogue import METRICS
from voxveil.results.html import html_table, small_below, value_cell
from voxveil.results.report.published import ESTIMATORS, IDENTIFICATION, VPC2024
from voxveil.results.report.results import Attack, Summary, attacks, headline, words_alone
from voxveil.results.report.utility import has_pitch, has_words, judges_of, other_recognizers
from voxveil.results.wording import (
    any_concentrated,
    bounds_text,
    concentrated,
    concentrated_text,
    loss_text,
    null_envelope,
    number,
    plain_promise,
    total_text,
    value_text,
    who_attacks,
)

__all__ = [
    "conditions_table",
    "independent_text",
    "measured_table",
    "promise_table",
    "published_table",
    "sexes_table",
    "worst_table",
]

_MEASURED = (
    ("eer", "EER"),
    ("tpr_fpr1", "Accepted at 1 % false alarms"),
    ("tpr_fpr01", "Accepted at 0.1 % false alarms"),
    ("unlinkability", "Unlinkability"),
    ("zebra_expected", "ZEBRA expected"),
    ("identification_rate", "Identified"),
    ("rank_mean", "Rank, mean"),
)
_WORST = (
    ("zebra_worst_case", "ZEBRA worst case"),
    ("eps_max_pav", "PAV"),
    ("eps_max_gauss", "Gaussians"),
    ("eps_max_t", "t distributions"),
    ("eps_max_rank", "Rank"),
    ("rank_max", "Rank, largest"),
)
_NOTHING, _WORDS = "if nothing leaks", "the words alone"


def promise_table(summaries: Sequence[Summary]) -> str:
    """Return the table of privacy losses with their qualifying parameters."""
    rows = []
    some = any_concentrated(summaries)
    for summary in summaries:
        streams, utterance = summary["promise"]["streams"], summary["promise"]["utterance"]
        largest = f"<small>largest of {utterance['utterances']}, up to {utterance['vectors']} vectors</small>"
        bounded = utterance["epsilon"] != "inf"
        totals = [escape(total_text(summary)) + (largest if bounded else "")]
        if some:
            noted = largest if concentrated(utterance) else ""
            totals.append(escape(concentrated_text(utterance)) + noted)
        cells = [escape(loss_text(streams.get(name))) for name in ("pitch", "content")]
        meaning = escape(plain_promise(summary))
        if bounded or concentrated(utterance):
            meaning += f"<small>By the noise alone, {escape(summary['promise']['passing'])}.</small>"
        rows.append([escape(summary["system"]), *cells, *totals, meaning])
    header = ["System", "ε of pitch", "ε of content", "ε of an utterance", "What it means"]
    if some:
        header.insert(-1, "(ε, δ) of an utterance <small>zCDP</small>")
    caption = "Promised by construction, in nat; pure ε-differential privacy"
    return html_table(caption + (", zCDP in a column of its own" if some else ""), header, rows, cards=True)


def measured_table(summaries: Sequence[Summary]) -> str:
    """Return the measurements: a row per system and attack, then the null ranges."""
    return _metric_table("Measured, with 95 % intervals over speakers", summaries, _MEASURED, utility=True)


def worst_table(summaries: Sequence[Summary]) -> str:
    """Return the worst case of single utterances by every estimator."""
    return _metric_table(
        "Worst case of a single score or rank, with ranges over speakers: no estimator is quoted alone",
        summaries,
        _WORST,
        utility=False,
    )


def _metric_table(
    caption: str, summaries: Sequence[Summary], metrics: Sequence[tuple[str, str]], *, utility: bool
) -> str:
    rows = []
    extra = {"per": "Phone errors <small>%</small>"} if utility else {}
    if utility and has_words(summaries):
        extra["wer"] = "Word errors <small>%</small>"
    recognizers = other_recognizers(summaries) if utility else []
    if utility and has_pitch(summaries):
        extra["pitch"] = "Pitch correlation"
    judges = judges_of(summaries) if utility else []
    for summary, attack in attacks(summaries):
        cells = [value_cell(attack["metrics"][name]) for name, _ in metrics]
        found = [summary["utility"].get(key) for key in extra]
        others = {entry["kind"]: entry for entry in (summary["utility"]["wer"] or {}).get("others", [])}
        found += [others.get(kind) for kind in recognizers]
        found += [summary["utility"].get("naturalness", {}).get(judge) for judge in judges]
        cells += [value_cell(entry) if entry else "not measured" for entry in found]
        rows.append([escape(summary["system"]), small_below(who_attacks(attack), _states(attack)), *cells])
    everyone = [attack for _, attack in attacks(summaries)]
    nulls = [escape(bounds_text(null_envelope(everyone, name))) for name, _ in metrics]
    blank = ["" for _ in (*extra, *recognizers, *judges)]
    words = words_alone(summaries)
    if words:
        rows.append([_WORDS, "", *(value_cell(words["metrics"][name]) for name, _ in metrics), *blank])
    rows.append([_NOTHING, "", *nulls, *blank])
    header = ["System", "Attacker <small>enrolment → trials</small>"]
    header += [f"{title} <small>{METRICS[name].unit}</small>" for name, title in metrics]
    header += [*extra.values(), *(f"Word errors by {escape(kind)} <small>%</small>" for kind in recognizers)]
    header += [*(f"Naturalness <small>MOS by {escape(judge)}</small>" for judge in judges)]
    return html_table(caption, header, rows, marked=(_WORDS, _NOTHING), cards=utility)


def conditions_table(summaries: Sequence[Summary]) -> str:
    """Return the table of the conditions of each row."""
    rows = []
    for summary, attack in attacks(summaries):
        trials = attack["trials"]
        rows.append(
            [
                escape(summary["system"]),
                escape(who_attacks(attack)),
                escape(attack["training"]),
                escape(_states(attack)),
                f"{trials['target']} / {trials['nontarget']}",
                str(trials["speakers"] if trials["speakers"] is not None else "unknown"),
                f"{attack['inputs']} against {attack['references']}" if attack["references"] else "none",
            ]
        )
    header = (
        "System",
        "Attacker",
        "Attacker trained on",
        "Enrolment → trials",
        "Target / nontarget trials",
        "Speakers",
        "Rank inputs",
    )
    return html_table("Conditions of every row", header, rows)


def published_table(summaries: Sequence[Summary]) -> str:
    """Return our semi-informed rows beside published ones, by EER."""
    rows: list[tuple[float, list[str]]] = []
    for system in VPC2024:
        found = IDENTIFICATION.get(system.name)
        cells = [number(system.value(name)) for name in ESTIMATORS]
        rows.append((system.eer, [system.name, "published", number(system.eer, 4), *cells, _rate(found, 40)]))
    for summary in summaries:
        attack = headline(summary)
        if attack["scenario"] != "semi_informed":
            continue
        metrics = attack["metrics"]
        eer = metrics["eer"]["value"]
        cells = [escape(value_text(metrics[name])) for name in ESTIMATORS]
        rate = _rate(metrics["identification_rate"]["value"], attack["references"])
        row = [escape(summary["system"]), "this run", escape(value_text(metrics["eer"], 4)), *cells, rate]
        rows.append((math.inf if eer is None else eer, row))
    worst = [f"ε_max {title} <small>nat</small>" for _, title in ESTIMATORS.values()]
    header = ["System", "Source", "EER <small>%</small>", *worst, "Identified <small>%, among N</small>"]
    ordered = [cells for _, cells in sorted(rows, key=lambda row: row[0])]
    return html_table("Semi-informed attacks, ordered by EER", header, ordered)


def _rate(value: float | None, references: int | None) -> str:
    return "" if value is None else f"{number(value)} among {references}"


def _states(attack: Attack) -> str:
    return f"{attack['enrolment']} → {attack['trial']}"


_TRIALS = (("same_sex", "EER, same sex"), ("F", "women"), ("M", "men"), ("pooled", "pooled"))
_NONE = "none"


def sexes_table(summaries: Sequence[Summary]) -> str:
    """Return EER by the sex of trials, ranks within sex, and disclosure of sex; empty where none is known."""
    rows = []
    for summary, attack in attacks(summaries):
        found = attack.get("by_sex")
        if not found:
            continue
        cells = [_cell(found["trials"].get(name), "eer") for name, _ in _TRIALS]
        ranks = found["ranks"] or {}
        cells += [_cell(ranks.get(sex), "rank_mean") for sex in ("F", "M")]
        cells += [_cell(found["sex"], "bits")]
        rows.append([escape(summary["system"]), escape(who_attacks(attack)), *cells])
    if not rows:
        return ""
    header = ["System", "Attacker"]
    header += [f"{title} <small>%</small>" for _, title in _TRIALS]
    header += ["Rank among women <small>bit</small>", "among men <small>bit</small>"]
    header += ["Sex itself <small>bit, 1 is full</small>"]
    return html_table("By sex: two sexes are easily told apart, so pooled trials read lower", header, rows)


def independent_text(summaries: Sequence[Summary]) -> str:
    """Return the summed bits of all representations with their assumption; empty where unknown."""
    lines = [
        f"<li><b>{escape(summary['system'])}</b>, {escape(scenario.replace('_', '-'))}:"
        f" {number(found['bits_if_independent'])} bit from {len(found['attackers'])} representations,"
        f" among {found['references']}</li>"
        for summary in summaries
        for scenario, found in (summary.get("independent") or {}).items()
    ]
    if not lines:
        return ""
    return (
        "<p>Mean rank disclosure added up over representations, if they were independent (which nobody"
        f" showed), capped at log2 N:</p><ul>{''.join(lines)}</ul>"
    )


def _cell(part: Mapping[str, Any] | None, name: str) -> str:
    return _NONE if part is None else value_cell(part[name])
