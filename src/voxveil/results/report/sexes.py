"""Results by sex, and the summed disclosure of all representations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from voxveil.results.html import html_table, value_cell
from voxveil.results.report.results import Summary, attacks
from voxveil.results.wording import number

__all__ = ["independent_text", "sexes_table"]

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
        who = f"{attack['attacker']}, {attack['scenario'].replace('_', '-')}"
        rows.append([escape(summary["system"]), escape(who), *cells])
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
