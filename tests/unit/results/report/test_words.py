"""Promises and numbers in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.results.wording import (
    bounds_text,
    epsilon_text,
    epsilon_value,
    loss_text,
    metric_text,
    null_envelope,
    number,
    plain_promise,
)


def summary(utterance: float | str, streams: dict[str, float | str], references: int | None = 16) -> dict:
    return {
        "kind": "anonymized",
        "promise": {
            "streams": {name: {"epsilon": value} for name, value in streams.items()},
            "utterance": {"epsilon": utterance},
        },
        "attacks": [{"references": references}],
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "undefined"),
        (0, "0"),
        (42.123, "42.1"),
        (0.00234, "0.00234"),
        (-3.0, "-3.00"),
        (1234.5, "1234"),
    ],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@given(st.floats(min_value=1e-4, max_value=9e5))
def test_numbers_read_back(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=0.006, abs=0.5 if value > 100 else 0)


def test_undefined_is_never_a_number() -> None:
    assert metric_text({"value": None, "ci95": None, "note": "1 target"}) == "undefined"
    assert metric_text({"value": None, "ci95": None, "note": "unbounded: a rank is empty"}) == "unbounded"
    assert metric_text({"value": 1.0, "ci95": [0.5, 2.0]}) == "1.00 [0.500, 2.00]"
    assert bounds_text(None) == ""


def test_epsilon_in_words() -> None:
    assert epsilon_text("inf") == "∞"
    assert math.isinf(epsilon_value("inf"))
    assert epsilon_text(10.0) == "10"
    assert epsilon_text(3010.0) == "3,010"


def test_an_epsilon_travels_with_unit_sensitivity_and_mechanism() -> None:
    loss = {"epsilon": 10.0, "unit": "vector", "sensitivity": [2.0, 2.0], "mechanism": "laplace_l1"}
    assert loss_text(loss) == "10 per vector (laplace_l1, L1 sensitivity 2)"
    cube = {"epsilon": 1.0, "unit": "utterance", "sensitivity": [1600.0, 4000.0], "mechanism": "laplace_cube"}
    assert loss_text(cube) == "1 per utterance (laplace_cube, L1 sensitivity 1,600 to 4,000)"
    assert "no noise" in loss_text({"epsilon": "inf", "mechanism": "identity", "sensitivity": None})
    assert loss_text(None) == "not released"


def test_a_promise_beyond_ln_n_is_called_what_it_is() -> None:
    useful = plain_promise(summary(2.0, {"pitch": 1.0, "content": 1.0}))
    assert "bound on who spoke" in useful
    few = plain_promise(summary(2.8, {"pitch": 1.4, "content": 1.4}))
    assert "exceeds ln N = 2.77 for the N = 16 speakers" in few
    huge = plain_promise(summary(3010.0, {"pitch": 10.0, "content": 10.0}))
    assert "vacuous" in huge
    without_ranks = plain_promise(summary(2.8, {"pitch": 2.8}, references=None))
    assert "bound on who spoke" in without_ranks


def test_noise_on_one_stream_is_no_promise() -> None:
    half = plain_promise(summary("inf", {"pitch": 10.0, "content": "inf"}))
    assert half.startswith("No promise: content passes without noise")
    assert "Noise on pitch alone bounds nothing" in half
    none = plain_promise(summary("inf", {"pitch": "inf", "content": "inf"}))
    assert none == "No promise: pitch and content pass without noise (ε = ∞)."


def test_the_null_range_covers_every_row() -> None:
    rows = [{"metrics": {"eer": {"null95": bounds}}} for bounds in ([44.0, 55.0], None, [43.0, 54.0])]
    assert null_envelope(rows, "eer") == [43.0, 55.0]
    assert null_envelope(rows[1:2], "eer") is None
