"""Losses refuse nonsense and compose by type."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.privacy import Loss, compose, utterance_loss
from voxveil.runtime.errors import PrivacyError


def loss(epsilon: float, unit: str = "utterance") -> Loss:
    return Loss("pure", epsilon, unit, 2.0, "laplace_l1", "2")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, -math.inf, "1", None, True])
def test_an_epsilon_that_is_none_is_refused(epsilon: object) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        Loss("pure", epsilon, "utterance", 1.0, "x", "1")  # type: ignore[arg-type]


def test_a_wrong_unit_or_measure_is_refused() -> None:
    with pytest.raises(PrivacyError, match="unit"):
        loss(1.0, "frame")
    with pytest.raises(PrivacyError, match="measure"):
        Loss("zcdp", 1.0, "utterance", 1.0, "x", "1")


def test_pitch_at_1_and_content_at_2_make_3_and_twice_that_6() -> None:
    once = compose(loss(1.0), utterance_loss(loss(2.0, "vector"), 1))
    assert once.epsilon == 3.0
    assert compose(once, once).epsilon == 6.0


def test_an_utterance_costs_the_pitch_and_every_vector() -> None:
    assert compose(loss(1.0), utterance_loss(loss(2.0, "vector"), 350)).epsilon == 1.0 + 350 * 2.0


def test_a_loss_per_vector_is_never_taken_for_one_per_utterance() -> None:
    with pytest.raises(PrivacyError, match="per vector"):
        compose(loss(1.0), loss(2.0, "vector"))
    with pytest.raises(PrivacyError, match="nothing"):
        compose()
    with pytest.raises(PrivacyError, match="at least one"):
        utterance_loss(loss(2.0, "vector"), 0)


def test_one_stream_without_noise_leaves_no_promise() -> None:
    assert compose(loss(1.0), loss(math.inf)).unbounded
    assert utterance_loss(loss(math.inf, "vector"), 3).unbounded


def test_infinity_is_text_in_json_and_comes_back() -> None:
    content = json.loads(json.dumps(loss(math.inf).to_json(), allow_nan=False))
    assert content["epsilon"] == "inf"
    assert Loss.from_json(content) == loss(math.inf)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8))
@settings(deadline=None)
def test_composition_is_the_sum_in_any_order(epsilons: list[float]) -> None:
    forward = compose(*map(loss, epsilons)).epsilon
    assert forward == compose(*map(loss, reversed(epsilons))).epsilon
    assert forward == pytest.approx(sum(epsilons))
    assert forward >= max(epsilons)
