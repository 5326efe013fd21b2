"""The report's table by sex, and the bits that representations add up to."""

from __future__ import annotations

import copy

from voxveil.results.report.page import Picture, page
from voxveil.results.report.page_tables import independent_text, sexes_table
from voxveil.results.report.results import Summary

PICTURES = {name: Picture(b"light", b"dark") for name in ("privacy_utility", "rank_histogram")}


def known(summaries: list[Summary]) -> list[dict]:
    """Return the summaries with results by sex in the first attack of the first system."""
    changed = [copy.deepcopy(dict(summary)) for summary in summaries]

    def value(number: float) -> dict:
        return {"value": number, "ci95": [number - 1, number + 1], "null95": None, "unit": "%"}

    changed[0]["attacks"][0]["by_sex"] = {
        "trials": {"same_sex": {"eer": value(31.0)}, "F": {"eer": value(32.0)}, "M": None, "pooled": None},
        "ranks": {"F": {"rank_mean": value(1.5)}, "M": None},
        "sex": {"bits": value(0.25)},
    }
    changed[0]["independent"] = {
        "semi_informed": {"bits_if_independent": 2.5, "attackers": ["ecapa", "prosody"], "references": 40}
    }
    return changed


def test_what_is_known_is_shown_and_what_is_not_is_named(summaries: list[Summary]) -> None:
    table = sexes_table(known(summaries))
    for text in ("31.0", "32.0", "1.5", "0.25", "none", "pooled"):
        assert text in table, text
    assert table.count("<tr>") == 2, "one heading, one attack"
    assert "2.5" in independent_text(known(summaries))
    assert "2 representations" in independent_text(known(summaries))


def test_nothing_is_shown_where_no_sex_is_known(summaries: list[Summary]) -> None:
    assert sexes_table(summaries) == independent_text(summaries) == ""


def test_the_page_holds_both(summaries: list[Summary]) -> None:
    shown = page("made", known(summaries), PICTURES, [], {})
    assert "By sex:" in shown
    assert "if they were independent" in shown
