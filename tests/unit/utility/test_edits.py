"""Edit counts and transcripts against literal definitions."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.utility.edits import Edits, count_edits, total
from voxveil.utility.transcripts import normalize_words

TOKENS = st.lists(st.sampled_from("abc"), max_size=8)


def slow_distance(reference: tuple[str, ...], hypothesis: tuple[str, ...]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (reference[i - 1] != hypothesis[j - 1]),
        )

    return distance(len(reference), len(hypothesis))


@given(TOKENS, TOKENS)
def test_errors_are_the_edit_distance_and_the_counts_fit_the_lengths(a: list[str], b: list[str]) -> None:
    edits = count_edits(a, b)
    assert edits.errors == slow_distance(tuple(a), tuple(b))
    assert edits.reference == len(a)
    assert len(a) - edits.deletions + edits.insertions == len(b)
    assert min(edits.substitutions, edits.deletions, edits.insertions) >= 0
    assert edits.substitutions + edits.deletions <= len(a)


@given(TOKENS, TOKENS)
def test_the_distance_is_symmetric(a: list[str], b: list[str]) -> None:
    assert count_edits(a, b).errors == count_edits(b, a).errors
    assert count_edits(a, a).errors == 0


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a b c", "a x c", (1, 0, 0)),
        ("a b c", "a c", (0, 1, 0)),
        ("a c", "a b c", (0, 0, 1)),
        ("a b c d", "b c d e", (0, 1, 1)),
        ("", "a", (0, 0, 1)),
    ],
)
def test_known_alignments(reference: str, hypothesis: str, expected: tuple[int, int, int]) -> None:
    edits = count_edits(reference.split(), hypothesis.split())
    assert (edits.substitutions, edits.deletions, edits.insertions) == expected


def test_empty_references_and_hypotheses_count() -> None:
    """Nothing is skipped: 0 errors, 2 insertions, 2 deletions; 4 errors of 2 reference words."""
    pairs = [("", ""), ("", "a b"), ("a b", "")]
    counted = [count_edits(reference.split(), hypothesis.split()) for reference, hypothesis in pairs]
    assert [(e.substitutions, e.deletions, e.insertions) for e in counted] == [
        (0, 0, 0),
        (0, 0, 2),
        (0, 2, 0),
    ]
    assert total(counted).rate == 200.0
    assert total([]) == Edits(0, 0, 0, 0) and total([]).rate is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HELLO, World.", ["hello", "world"]),
        ("it's John\u2019s 'book'", ["it's", "john's", "book"]),
        ("well-known  \u2014 snake_case", ["well", "known", "snake", "case"]),
        ("\uff28\uff45\uff4c\uff4c\uff4f", ["hello"]),
        ("", []),
        (" ... ' ", []),
    ],
)
def test_one_spelling(text: str, words: list[str]) -> None:
    assert normalize_words(text) == words


def test_case_and_punctuation_are_no_errors() -> None:
    assert count_edits(normalize_words("HELLO, World."), normalize_words("hello world")).errors == 0
