"""k-ary randomized response: its exact law, its loss, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.config.features import ContentVariant
from voxveil.privacy import PublicNoise, RandomizedResponse, SystemNoise, content_mechanism
from voxveil.privacy.response import kept_probability, respond, words_per_other
from voxveil.runtime.errors import PrivacyError

EPSILONS = st.floats(0.01, 32.0)
COUNTS = st.integers(2, 200)


@given(EPSILONS, COUNTS)
def test_the_ratio_of_any_two_outputs_is_at_most_exp_epsilon(epsilon: float, count: int) -> None:
    other = words_per_other(epsilon, count)
    own = 2**64 - (count - 1) * other
    assert own > 0 and other > 0
    # The exponential from below: a rational under e^epsilon that the true ratio may not pass.
    assert Fraction(own, other) <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**14))
    assert own / 2**64 == pytest.approx(kept_probability(epsilon, count), rel=1e-9)


def literal(code: int, count: int, epsilon: float, word: int) -> int:
    """Walk the words in order: T for each other code, beginning after the true one; the rest is its own."""
    share = words_per_other(epsilon, count)
    for step in range(1, count):
        if word < step * share:
            return (code + step) % count
    return code


@given(
    st.integers(2, 50),
    EPSILONS,
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
)
def test_it_is_the_literal_walk_over_the_words(count: int, epsilon: float, words: list[int]) -> None:
    codes = np.arange(len(words)) % count
    told = respond(codes, count, epsilon, np.array(words, np.uint64))
    assert told.tolist() == [literal(int(c), count, epsilon, w) for c, w in zip(codes, words, strict=True)]


@pytest.mark.parametrize(("epsilon", "kept"), [(10.0, 0.998), (3.0, 0.34)])
def test_forty_codes_keep_what_the_formula_says(epsilon: float, kept: float) -> None:
    assert kept_probability(epsilon, 40) == pytest.approx(kept, abs=0.005)
    scores = np.eye(40)[np.arange(40_000) % 40]
    told = RandomizedResponse(epsilon).release(scores, SystemNoise()).value
    assert (told.sum(axis=1) == 1).all()
    same = (told.argmax(axis=1) == scores.argmax(axis=1)).mean()
    spread = math.sqrt(kept * (1 - kept) / 40_000)
    assert abs(same - kept_probability(epsilon, 40)) < 6 * spread
    # Every other code is told equally often.
    wrong = (told.argmax(axis=1) - scores.argmax(axis=1)) % 40
    counts = np.bincount(wrong, minlength=40)[1:]
    expected = counts.sum() / 39
    assert np.abs(counts - expected).max() < 6 * math.sqrt(expected) + 1


def test_its_loss_travels_with_unit_sensitivity_and_mechanism() -> None:
    mechanism = content_mechanism(ContentVariant("randomized_response", 3.0))
    released = mechanism.release(np.eye(4), SystemNoise())
    loss = released.loss.to_json()
    assert (loss["epsilon"], loss["unit"], loss["mechanism"]) == (3.0, "vector", "randomized_response")
    assert loss["sensitivity"] == 2.0 and loss["note"] == ""
    seeded = mechanism.release(np.eye(4), PublicNoise(1, "a")).loss
    assert "no privacy claim" in seeded.note


def test_seeded_noise_is_keyed_and_system_noise_is_not() -> None:
    scores = np.zeros((500, 8))
    draw = RandomizedResponse(0.5)
    first, same, other = (draw.perturb(scores, PublicNoise(1, key)) for key in ("a", "a", "b"))
    assert (first == same).all() and (first != other).any()
    fresh = [draw.perturb(scores, SystemNoise()) for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 33.0])
def test_an_epsilon_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="randomized_response: epsilon must be"):
        RandomizedResponse(epsilon)


@pytest.mark.parametrize("value", [np.zeros((3, 1)), np.zeros((0, 4)), np.zeros(4), np.full((2, 2), np.nan)])
def test_what_is_no_code_is_refused(value: np.ndarray) -> None:
    with pytest.raises(PrivacyError, match="randomized_response"):
        RandomizedResponse(1.0).release(value, SystemNoise())
