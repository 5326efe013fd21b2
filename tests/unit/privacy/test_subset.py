"""k-ary subset selection: its exact law, its loss, what it passes, and what it refuses."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from voxveil.config.features import ContentVariant
from voxveil.privacy import PublicNoise, RandomizedResponse, SubsetSelection, SystemNoise, content_mechanism
from voxveil.privacy.audit.accounting import approximate_epsilon
from voxveil.privacy.audit.information import channel_information, utterance_information
from voxveil.privacy.audit.response_audit import audit_subset
from voxveil.privacy.subset import passed_information, select, subset_size, words_without
from voxveil.runtime.errors import PrivacyError
from voxveil.runtime.seeding import stream

EPSILONS = st.floats(1e-6, 32.0)
COUNTS = st.integers(2, 200)


def seeded_words(*keys: str | int):  # type: ignore[no-untyped-def]
    generator = stream(21, *keys)
    return lambda count: generator.integers(0, 2**64, size=count, dtype=np.uint64)


@given(EPSILONS, COUNTS, st.data())
def test_the_ratio_of_any_two_sets_is_at_most_exp_epsilon(
    epsilon: float, count: int, data: st.DataObject
) -> None:
    """In whole numbers of words: a set with the code against a set without it, both ways."""
    size = data.draw(st.integers(1, count - 1))
    without = words_without(epsilon, count, size)
    within = 2**64 - without
    assert within > 0 and without > 0
    # All sets of one kind share their words equally: C(k-1, d-1) with the code, C(k-1, d) without.
    sets = Fraction(math.comb(count - 1, size), math.comb(count - 1, size - 1))
    bound = Fraction(math.exp(epsilon))
    rounding = Fraction(1, 10**14)
    ratio = Fraction(within, without) * sets
    assert 1 / bound * (1 - rounding) <= ratio <= bound * (1 + rounding)
    # No more words are given away than needed: one fewer would spend more than epsilon.
    if without > 1:
        assert Fraction(within + 1, without - 1) * sets >= bound * (1 - rounding)


class LiteralSelection:
    """One code at a time: a word for the code, then a shuffle by rejection-free uniform choice."""

    def __init__(self, *keys: str | int) -> None:
        self._generator = stream(22, *keys)

    def __call__(self, code: int, count: int, size: int, epsilon: float) -> tuple[int, ...]:
        word = int(self._generator.integers(0, 2**64, dtype=np.uint64))
        inside = word >= words_without(epsilon, count, size)
        others = [other for other in range(count) if other != code]
        chosen = [code] if inside else []
        while len(chosen) < size:
            chosen.append(others.pop(int(self._generator.integers(len(others)))))
        return tuple(sorted(chosen))


def law(code: int, count: int, size: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """The probability of every set, from the definition alone."""
    weights = {
        subset: math.exp(epsilon) if code in subset else 1.0
        for subset in itertools.combinations(range(count), size)
    }
    return {subset: weight / sum(weights.values()) for subset, weight in weights.items()}


@pytest.mark.parametrize(("count", "size", "epsilon"), [(2, 1, 1.0), (5, 2, 0.5), (6, 3, 1.5), (6, 5, 2.0)])
def test_every_set_has_its_probability(count: int, size: int, epsilon: float) -> None:
    code, draws = count - 1, 40_000
    expected = law(code, count, size, epsilon)
    told = select(np.full(draws, code), count, size, epsilon, seeded_words("law", count, size))
    assert (told.sum(axis=1) == size).all()
    literal = LiteralSelection("law", count, size)
    samples = {
        "ours": [tuple(np.flatnonzero(row).tolist()) for row in told],
        "literal": [literal(code, count, size, epsilon) for _ in range(5_000)],
    }
    for sample in samples.values():
        counted = Counter(sample)
        counts = [counted[subset] for subset in expected]
        assert stats.chisquare(counts, np.array([*expected.values()]) * len(sample)).pvalue > 1e-4
        wrong = np.array([*law(code, count, size, epsilon + 0.3).values()])
        if len(sample) == draws:  # an epsilon wrong by 0.3 is seen
            assert stats.chisquare(counts, wrong * len(sample)).pvalue < 1e-6


def test_equal_words_are_drawn_again() -> None:
    """Ties would favour the codes that come first."""
    ordinary, calls = seeded_words("ties"), 0

    def tied(count: int) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.zeros(count, np.uint64) if calls == 2 else ordinary(count)

    told = select(np.zeros(200, np.int64), 5, 2, 1.0, tied)
    assert calls == 3
    assert set(told[:, 1:].any(axis=0)) == {True}
    assert (told.sum(axis=1) == 2).all()


@given(st.floats(0.01, 4.0), st.integers(2, 80))
@settings(deadline=None)
def test_the_size_passes_the_most_and_stays_below_the_channel_bound(epsilon: float, count: int) -> None:
    size = subset_size(epsilon, count)
    passed = passed_information(epsilon, count, size)
    assert all(passed >= passed_information(epsilon, count, other) for other in range(1, count))
    assert 0 < passed <= channel_information(epsilon) * (1 + 1e-9)
    # Randomized response is the subset of one.
    q = math.exp(epsilon) / (math.exp(epsilon) + count - 1)
    literal = math.log(count) + q * math.log(q)
    literal += (1 - q) * math.log((1 - q) / (count - 1))
    assert passed_information(epsilon, count, 1) == pytest.approx(literal, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.1, 19), (0.5, 17), (1.0, 14), (2.0, 8)])
def test_forty_phones_reach_the_bound_of_all_mechanisms(epsilon: float, size: int) -> None:
    assert subset_size(epsilon, 40) == size
    assert passed_information(epsilon, 40, size) > 0.995 * channel_information(epsilon)
    assert passed_information(epsilon, 40, 1) < 0.5 * passed_information(epsilon, 40, size)


def test_its_loss_travels_with_unit_sensitivity_and_mechanism() -> None:
    mechanism = content_mechanism(ContentVariant("subset_selection", 1.0))
    released = mechanism.release(np.eye(40), SystemNoise())
    assert np.allclose(released.value.sum(axis=1), 1.0)
    assert sorted(set(released.value.ravel())) == [0.0, 1 / 14]
    loss = released.loss.to_json()
    assert (loss["epsilon"], loss["unit"], loss["mechanism"]) == (1.0, "vector", "subset_selection")
    assert (loss["sensitivity"], loss["note"], loss["measure"]) == (2.0, "", "pure")
    assert "no privacy claim" in mechanism.release(np.eye(4), PublicNoise(1, "a")).loss.note


def test_it_is_accounted_for_like_any_answer_among_two() -> None:
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    subset, response = (kind(1.0).loss_for((350, 40)) for kind in (SubsetSelection, RandomizedResponse))
    composed = approximate_epsilon({"content": subset}, 350)
    assert composed == approximate_epsilon({"content": response}, 350) < 350
    assert utterance_information({"content": subset}, 350) == pytest.approx(350 * channel_information(1.0))


def test_seeded_noise_is_keyed_and_system_noise_is_not() -> None:
    scores = np.zeros((500, 8))
    draw = SubsetSelection(0.5)
    first, same, other = (draw.perturb(scores, PublicNoise(1, key)) for key in ("a", "a", "b"))
    assert (first == same).all() and (first != other).any()
    fresh = [draw.perturb(scores, SystemNoise()) for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 33.0, 1e-7])
def test_an_epsilon_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="subset_selection: epsilon must be"):
        SubsetSelection(epsilon)


@pytest.mark.parametrize("value", [np.zeros((3, 1)), np.zeros((0, 4)), np.zeros(4), np.full((2, 2), np.nan)])
def test_what_is_no_code_is_refused(value: np.ndarray) -> None:
    with pytest.raises(PrivacyError, match="subset_selection"):
        SubsetSelection(1.0).release(value, SystemNoise())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_audit_passes_the_right_mechanism_and_catches_twice_the_epsilon(epsilon: float) -> None:
    findings = audit_subset(SubsetSelection(epsilon), epsilon, releases=30_000, noise=PublicNoise(1, "a"))
    assert [f.verdict for f in findings] == ["consistent"] * 3
    bound = findings[0].bound
    assert bound is not None and 0.7 * epsilon < bound < epsilon
    doubled = audit_subset(SubsetSelection(2 * epsilon), epsilon, releases=30_000)
    assert [f.verdict for f in doubled] == ["violation"] * 3


def test_the_audit_catches_a_set_that_is_filled_unevenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranking the others by their number instead of by chance: the law sees it, the bound need not."""

    def unranked(rows: int, count: int, words: object) -> np.ndarray:
        return np.tile(np.arange(count), (rows, 1))

    monkeypatch.setattr("voxveil.privacy.subset._ranks", unranked)
    assert audit_subset(SubsetSelection(1.0), 1.0, releases=10_000)[2].verdict == "violation"
