"""Differences of two stored measurements: their intervals, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.results.comparison.comparison import _exact
from voxveil.results.comparison.differences import compare_entries, unpaired_interval
from voxveil.results.comparison.render import difference_text

values = st.floats(-100, 100)
widths = st.floats(0, 50)


def entry(
    value: float | None, low: float = 0.0, high: float = 0.0, null: list[float] | None = None, note=None
):
    ci = None if value is None else [value - low, value + high]
    return {"value": value, "ci95": ci, "null95": null, "note": note}


def test_symmetric_intervals_add_like_standard_errors() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(10, 3, 400_000), rng.normal(14, 4, 400_000)
    got = unpaired_interval(10, (10 - 1.96 * 3, 10 + 1.96 * 3), 14, (14 - 1.96 * 4, 14 + 1.96 * 4))
    assert got == pytest.approx(np.quantile(second - first, [0.025, 0.975]), abs=0.1)
    assert got == pytest.approx((4 - 1.96 * 5, 4 + 1.96 * 5))


def test_each_side_keeps_its_own_skew() -> None:
    # By hand: 5 - hypot(3, 2) and 5 + hypot(4, 1).
    got = unpaired_interval(10, (9, 12), 15, (12, 19))
    assert got == pytest.approx((5 - 13**0.5, 5 + 17**0.5))


@given(values, widths, widths, values, widths, widths)
def test_exchanging_the_runs_mirrors_the_interval(a, al, ah, b, bl, bh) -> None:
    forward = unpaired_interval(a, (a - al, a + ah), b, (b - bl, b + bh))
    backward = unpaired_interval(b, (b - bl, b + bh), a, (a - al, a + ah))
    assert forward == pytest.approx((-backward[1], -backward[0]), abs=1e-9)
    assert forward[0] - 1e-9 <= b - a <= forward[1] + 1e-9


def test_a_value_outside_its_own_interval_gives_no_negative_width() -> None:
    assert unpaired_interval(0.1, (0.2, 0.4), 0.1, (0.2, 0.4)) == pytest.approx((-0.3, 0.3))


@pytest.mark.parametrize(
    ("name", "second", "verdict", "meaning"),
    [
        ("eer", 20.5, "within noise", ""),
        ("eer", 40.0, "higher", "better"),
        ("identification_rate", 40.0, "higher", "worse"),
        ("identification_rate", 5.0, "lower", "better"),
        ("per", 40.0, "higher", "worse"),
    ],
)
def test_the_verdict(name: str, second: float, verdict: str, meaning: str) -> None:
    found = compare_entries(name, entry(20.0, 2, 2), entry(second, 2, 2))
    assert (found.verdict, found.meaning, found.method) == (verdict, meaning, "unpaired")


def test_a_paired_interval_wins_and_says_so() -> None:
    found = compare_entries("eer", entry(20.0, 9, 9), entry(22.0, 9, 9), (0.5, 3.5))
    assert (found.interval, found.method, found.verdict) == ((0.5, 3.5), "paired", "higher")


def test_a_maximum_is_never_judged() -> None:
    found = compare_entries("eps_max_pav", entry(1.0, 0.1, 0.1), entry(9.0, 0.1, 0.1), (7.0, 9.0))
    assert (found.value, found.verdict, found.interval) == (8.0, "not judged", None)


@pytest.mark.parametrize(
    ("second", "note"),
    [
        (None, "not measured in both"),
        (entry(None, note="unbounded: a rank has probability 0"), "unbounded"),
        (entry(None, note="the scores are not LLRs"), "undefined"),
        ({**entry(1.0), "ci95": None}, "no interval in both"),
    ],
)
def test_what_has_no_number_or_interval_is_not_judged(second, note: str) -> None:
    found = compare_entries("rank_mean", entry(1.0, 1, 1), second)
    assert (found.verdict, found.note) == ("not judged", note)


def test_two_readings_of_nothing_are_said_to_be_such() -> None:
    null = [0.0, 0.3]
    found = compare_entries("rank_mean", entry(0.1, 0.1, 0.1, null), entry(0.2, 0.1, 0.1, null))
    assert found.note == "both read as if nothing leaks"
    leaks = compare_entries("rank_mean", entry(0.1, 0.1, 0.1, null), entry(0.9, 0.1, 0.1, null))
    assert leaks.note == ""


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [(25810.0, 2590.0, "-23,220"), (10.0, 100.0, "+90"), (1.5, 1.5, "0"), (0.3, 0.1, "-0.2")],
)
def test_a_difference_of_epsilons_is_written_as_they_are(first: float, second: float, shown: str) -> None:
    assert difference_text(_exact(first, second).to_json()).startswith(f"{shown} ")
