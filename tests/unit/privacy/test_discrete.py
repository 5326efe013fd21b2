"""The exact sampler against its law, a literal version and OpenDP."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from voxveil.privacy.discrete import Rate, bernoulli_exp, discrete_laplace, rate_for, to_grid
from voxveil.privacy.noise import SystemNoise
from voxveil.runtime.errors import PrivacyError
from voxveil.runtime.seeding import stream


class SeededWords:
    """A fixed stream of words, so that a statistical test always gives the same verdict."""

    def __init__(self, *keys: str | int) -> None:
        self._generator = stream(11, *keys)

    def __call__(self, count: int) -> np.ndarray:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


class LiteralSampler:
    """Algorithms 1 and 2 of Canonne, Kamath and Steinke, one draw at a time."""

    def __init__(self, *keys: str | int) -> None:
        self._generator = stream(12, *keys)

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        k = 1
        while int(self._generator.integers(0, denominator * k)) < numerator:
            k += 1
        return k % 2 == 1

    def laplace(self, s: int, t: int) -> int:
        while True:
            u = int(self._generator.integers(0, t))
            if not self.bernoulli_exp(u, t):
                continue
            v = 0
            while self.bernoulli_exp(1, 1):
                v += 1
            magnitude = (u + t * v) // s
            negative = bool(self._generator.integers(0, 2))
            if negative and magnitude == 0:
                continue
            return -magnitude if negative else magnitude


def chi_square(draws: np.ndarray, rate: float, reach: int) -> float:
    """p-value of draws against the exact law, tails pooled."""
    q = math.exp(-rate)
    values = np.arange(-reach, reach + 1)
    law = (1 - q) / (1 + q) * q ** np.abs(values)
    tail = (1 - law.sum()) / 2
    counts = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    return float(stats.chisquare(counts, np.array([tail, *law, tail]) * len(draws)).pvalue)


@pytest.mark.parametrize(("rate", "reach"), [(3.0, 1), (1.0, 5), (0.1, 40), (0.003, 900)])
def test_the_law_is_the_discrete_laplace_law(rate: float, reach: int) -> None:
    draws = discrete_laplace(200_000, rate_for(rate, 1), SeededWords("law", str(rate)))
    assert chi_square(draws, rate, reach) > 1e-4
    assert chi_square(draws, rate * 1.05, reach) < 1e-6  # a rate wrong by 5 % is seen


def test_the_literal_sampler_agrees() -> None:
    literal = LiteralSampler("laplace")
    slow = [literal.laplace(3, 16) for _ in range(6000)]
    fast = discrete_laplace(60_000, Rate(3, 4), SeededWords("fast"))
    assert chi_square(np.array(slow), 3 / 16, 12) > 1e-4
    assert chi_square(fast, 3 / 16, 12) > 1e-4


def test_opendp_agrees() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    dp.enable_features("contrib")
    measurement = dp.m.make_geometric(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=10.0
    )
    oracle = np.array(measurement([0] * 20_000))
    ours = discrete_laplace(20_000, rate_for(0.1, 1), SystemNoise().words)
    assert stats.ks_2samp(oracle, ours).pvalue > 1e-6
    assert chi_square(oracle, 0.1, 40) > 1e-6


@pytest.mark.parametrize("numerator", [0, 1, 2**19, 2**20 - 1, 2**20])
def test_bernoulli_exp_has_its_probability(numerator: int) -> None:
    n = 100_000
    hits = int(bernoulli_exp(np.full(n, numerator, np.uint64), 20, SeededWords("b", numerator)).sum())
    expected = math.exp(-numerator / 2**20)
    assert stats.binomtest(hits, n, expected).pvalue > 1e-4


@given(st.floats(1e-4, 2.0**40), st.integers(1, 2**24))
@settings(deadline=None)
def test_the_epsilon_spent_is_at_most_the_one_claimed_and_hardly_less(
    epsilon: float, sensitivity: int
) -> None:
    rate = rate_for(epsilon, sensitivity)
    spent = rate.value * sensitivity
    assert spent <= Fraction(epsilon)
    assert spent >= Fraction(epsilon) * (1 - Fraction(1, 1000))
    assert 0 < rate.numerator < 2**62 and 1 <= rate.denominator_bits <= 56


@given(st.floats(2.0**-90, 2.0**-46), st.integers(1, 2**24))
@example(2.0**-46, 1)
@example(math.nextafter(2.0**-46, 0), 1)
@settings(deadline=None)
def test_an_epsilon_is_refused_where_its_rate_has_less_than_ten_bits(
    epsilon: float, sensitivity: int
) -> None:
    if Fraction(epsilon) / sensitivity * 2**56 >= 2**10:
        assert rate_for(epsilon, sensitivity).numerator >= 2**10
    else:
        with pytest.raises(PrivacyError, match="too small"):
            rate_for(epsilon, sensitivity)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(1, 30))
@settings(deadline=None)
def test_truncation_moves_toward_zero_by_less_than_a_step(values: list[float], bits: int) -> None:
    steps = to_grid(np.array(values), bits)
    for value, step in zip(values, steps.tolist(), strict=True):
        exact = Fraction(value) * 2**bits
        assert abs(step) <= abs(exact) < abs(step) + 1
        assert step * exact >= 0


def test_edge_words_end_and_give_integers() -> None:
    """The smallest and largest words, then ordinary ones: always finite."""
    for edge in (0, 1, 2**63, 2**64 - 1):
        ordinary = SeededWords("edge", edge)
        seen = 0

        def words(count: int, edge: int = edge, ordinary: SeededWords = ordinary) -> np.ndarray:
            nonlocal seen
            seen += 1
            return np.full(count, edge, np.uint64) if seen <= 3 else ordinary(count)

        draws = discrete_laplace(50, rate_for(1.0, 2**21), words)
        assert draws.dtype == np.int64 and np.abs(draws).max() < 2**40
    assert len(discrete_laplace(0, rate_for(1.0, 1), SystemNoise().words)) == 0


def test_many_draws_are_made_in_blocks_of_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxveil.privacy.discrete._BLOCK", 1000)
    asked: list[int] = []
    words = SeededWords("blocks")

    def counted(count: int) -> np.ndarray:
        asked.append(count)
        return words(count)

    draws = discrete_laplace(50_500, rate_for(0.5, 1), counted)
    assert max(asked) == 1000
    assert chi_square(draws, 0.5, 10) > 1e-4


def test_a_draw_that_would_overflow_is_refused() -> None:
    calls = 0

    def climbing(count: int) -> np.ndarray:
        nonlocal calls
        calls += 1
        # U = 0 is accepted; then k = 2 hits (0) and k = 3 misses: odd, so V climbs for ever.
        return np.full(count, 0 if calls == 1 or calls % 2 else 2**63 - 2, np.uint64)

    with pytest.raises(PrivacyError, match="nothing was released"):
        discrete_laplace(1, Rate(1, 56), climbing)
    assert 2 * 128 <= calls <= 2 * 128 + 4
