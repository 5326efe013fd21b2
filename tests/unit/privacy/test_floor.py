"""The floor of locally private mechanisms: neighbourhoods by counting, mass by sorting, the theorem."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_languages import all_strings, made_language, one_word_language
from voxveil.privacy.audit.floor import floor_of, largest_mass, log_neighbours
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import count_edits


def distances(firsts: list[tuple[int, ...]], seconds: list[tuple[int, ...]]) -> np.ndarray:
    """All edit distances, by the table of the definition."""

    def one(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            last, row = row, [i]
            for j, y in enumerate(b, 1):
                row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
        return row[-1]

    return np.array([[one(a, b) for b in seconds] for a in firsts])


def strings_of(words: int, longest: int) -> list[tuple[int, ...]]:
    return [s for n in range(longest + 1) for s in itertools.product(range(words), repeat=n)]


@pytest.mark.parametrize(("vocabulary", "longest"), [(2, 3), (3, 3), (4, 2)])
def test_no_string_has_more_neighbours(vocabulary: int, longest: int) -> None:
    bound = np.exp(log_neighbours(longest, vocabulary))
    every = strings_of(vocabulary, longest + 2)
    for length in range(longest + 1):
        near = distances(every, list(itertools.product(range(vocabulary), repeat=length)))
        for edits in range(longest + 1):
            most = (near <= edits).sum(axis=1).max()
            assert most <= bound[edits, length] * (1 + 1e-8)
            # One edit within a length is a substitution, which is counted exactly.
            if edits <= 1:
                assert bound[edits, length] == pytest.approx(most)


@pytest.mark.parametrize(("longest", "vocabulary"), [(40, 50_000), (80, 72_000)])
def test_neighbours_of_long_strings_are_numbers(longest: int, vocabulary: int) -> None:
    found = log_neighbours(longest, vocabulary)
    assert np.isfinite(found).all() and (np.diff(found, axis=0) >= -1e-9).all()
    whole = np.arange(longest + 1) * math.log(vocabulary)
    assert (found <= whole + 1e-6).all() and found[-1] == pytest.approx(whole)
    # D substitutions of m words are the most there is, but for a factor.
    assert found[2, 20] == pytest.approx(math.log(190) + 2 * math.log(vocabulary), rel=0.03)


@given(
    weights=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30),
    count=st.integers(1, 40),
)
def test_the_mass_of_the_likeliest_is_their_sum(weights: list[float], count: int) -> None:
    """Each sentence occurs in proportion to its probability: the draws are the distribution itself."""
    repeats = np.round(np.array(weights) * 100).astype(int)
    p = repeats / repeats.sum()
    scores = np.repeat(np.log(p), repeats)
    found = largest_mass(scores, np.log([count]))[0]
    assert found == pytest.approx(min(np.sort(p)[::-1][:count].sum(), 1.0), rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    longest=st.integers(1, 3),
    epsilon=st.floats(0.0, 5.0),
    alpha=st.floats(0.05, 0.9),
    random=st.integers(0, 10_000),
)
def test_no_private_mechanism_beats_it(
    seed: int, longest: int, epsilon: float, alpha: float, random: int
) -> None:
    """Random channels with the ratio e^epsilon, and the best one of a kind, on exact draws of a language."""
    language = made_language(seed, ("a", "b"), 2, longest)
    strings = all_strings(language)
    repeats = np.round(np.array([float(p) for p in language.probabilities(strings)]) * 2000).astype(int)
    chosen = [string for string, often in zip(strings, repeats, strict=True) if often]
    repeats = repeats[repeats > 0]
    p = repeats / repeats.sum()
    lengths = np.array([len(string) for string in chosen])
    if not lengths.any():
        return
    floor = floor_of(
        np.repeat(np.log(p), repeats),
        np.repeat(lengths, repeats),
        [epsilon],
        vocabulary=2,
        longest=longest,
        confidence=0.0,
    )
    near = distances(chosen, strings)
    generator = np.random.default_rng(random)
    base = generator.dirichlet(np.full(len(strings), 0.3))
    best = np.zeros((len(chosen), len(strings)))
    best[np.arange(len(chosen)), near.argmin(axis=1)] = 1.0
    for channel in (np.tile(base, (len(chosen), 1)), _response(best, base, epsilon)):
        assert (channel.max(axis=0) <= np.exp(epsilon) * channel.min(axis=0) + 1e-12).all()
        right = float((p[:, None] * channel * (near == 0)).sum())
        errors = 100 * float((p[:, None] * channel * near).sum()) / float((p * lengths).sum())
        assert right <= floor.exact[0] + 1e-9
        assert errors >= floor.errors[0] - 1e-6


def _response(best: np.ndarray, base: np.ndarray, epsilon: float) -> np.ndarray:
    """Keep the best output as often as the ratio e^epsilon allows, else draw from the base."""
    least = base[base > 0].min()
    share = 1.0 / (1.0 + math.expm1(epsilon) * least)
    kept = np.where((base > 0)[None], best, 0.0)
    return (1 - share) * kept + (1 - (1 - share) * kept.sum(axis=1, keepdims=True)) * base[None]


def test_draws_give_an_allowance_and_more_of_them_a_smaller_one() -> None:
    language = one_word_language({"a": 0.2, "b": 0.2, "c": 0.2}, longest=4)
    generator = np.random.default_rng(5)

    def floor(count: int, confidence: float) -> float:
        drawn = language.draw(count, lambda n: generator.integers(0, 2**64, size=n, dtype=np.uint64))
        logs, lengths = language.log_probabilities(drawn), np.array([len(s) for s in drawn])
        found = floor_of(logs, lengths, [1.0], vocabulary=3, longest=4, confidence=confidence)
        assert found.kind == ("theorem" if confidence else "estimate") and found.draws == count
        assert found.to_json()["kind"] == found.kind
        return found.exact[0]

    chances = sorted((float(p) for p in language.probabilities(all_strings(language))), reverse=True)
    # e likeliest: two of them, and 0.718 of the third.
    true = sum(chances[:2]) + (math.e - 2) * chances[2]
    assert floor(20_000, 0.0) == pytest.approx(true, abs=0.02)
    assert true < floor(20_000, 0.95) < floor(1_000, 0.95) <= 1.0


@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_a_floor_needs_words(lengths: list[int]) -> None:
    with pytest.raises(InputError, match="needs sentences"):
        floor_of(
            np.zeros(len(lengths)), np.array(lengths, int), [1.0], vocabulary=3, longest=4, confidence=0.0
        )


def test_the_distances_of_this_file_are_those_of_word_errors() -> None:
    strings = strings_of(2, 3)
    for a, b in itertools.product(strings, repeat=2):
        assert distances([a], [b])[0, 0] == count_edits([str(x) for x in a], [str(x) for x in b]).errors
