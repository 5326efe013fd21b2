"""Pitch correlation: frames voiced in both, an oracle, means with intervals over speakers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.utility.pitch import LEAST_FRAMES, evenly, mean_correlation, pitch_correlation


def literal(original: list[float], released: list[float]) -> float | None:
    pairs = [(a, b) for a, b in zip(original, released, strict=True) if a > 0 and b > 0]
    if len(pairs) < LEAST_FRAMES:
        return None
    mean = [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]
    cross = sum((a - mean[0]) * (b - mean[1]) for a, b in pairs)
    power = [sum((pair[k] - mean[k]) ** 2 for pair in pairs) for k in (0, 1)]
    return cross / (power[0] * power[1]) ** 0.5


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_the_formula_says(seed: int) -> None:
    draw = stream(seed, "pitch-correlation")
    tracks = draw.uniform(80, 300, (2, 60)) * (draw.uniform(size=(2, 60)) > 0.4)
    found = pitch_correlation(*tracks)
    assert found == pytest.approx(literal(*tracks.tolist()), abs=1e-12)


@given(st.floats(0.3, 3), st.floats(0, 100))
def test_another_height_and_range_do_not_matter(scale: float, shift: float) -> None:
    track = 150 + 50 * np.sin(np.arange(40) / 3)
    assert pitch_correlation(track, scale * track + shift) == pytest.approx(1.0, abs=1e-9)


def test_where_there_is_nothing_to_compare_there_is_no_value() -> None:
    voiced, silent = np.linspace(100, 200, 40), np.zeros(40)
    assert pitch_correlation(voiced, silent) is None
    assert pitch_correlation(voiced, np.full(40, 120.0)) is None
    # Words spoken again have a length of their own: no frame belongs to another.
    assert pitch_correlation(voiced, voiced[:-1]) is None
    with pytest.raises(InputError, match="F0 must be"):
        pitch_correlation(voiced, voiced[None])


def test_the_mean_counts_utterances_and_says_what_is_undefined() -> None:
    found = mean_correlation([0.5, None, 0.9, 0.1], ["a", "a", "b", "b"], stream(1, "x"), 200)
    assert found["value"] == pytest.approx(0.5)
    assert (found["utterances"], found["speakers"], found["undefined"]) == (3, 2, 1)
    assert found["ci95"][0] <= 0.5 <= found["ci95"][1]
    nothing = mean_correlation([None], ["a"], stream(1, "x"), 200)
    assert nothing["value"] is None and nothing["ci95"] is None and nothing["undefined"] == 1


@given(st.integers(0, 50), st.integers(1, 60))
def test_a_part_is_spread_over_all(count: int, most: int) -> None:
    items = list(range(count))
    chosen = evenly(items, most)
    assert chosen == sorted(set(chosen)) and len(chosen) == min(count, most)
    if len(chosen) > 1:
        assert chosen[0] == 0 and chosen[-1] >= count - -(-count // len(chosen))
