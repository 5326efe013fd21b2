from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel, arpa, mixed, pruned, restricted

WORDS = ("a", "b", "c", "d")
TEXT = [["a", "b", "a"], ["a", "b", "c"], ["c"], ["b", "a", "b", "c", "a"], ["d", "a", "b"]]
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=6)


def rows(model: NGramModel, names: Sequence[str]) -> np.ndarray:
    return np.array([[model.words.index(name) for name in names]])


def probability(model: NGramModel, *names: str) -> float:
    return float(np.exp(model.log_prob(rows(model, names)))[0])


def literal_kneser_ney(text: list[list[str]], order: int) -> dict[tuple[str, ...], float]:
    """Interpolated Kneser-Ney, word by word as in Chen and Goodman (1999), for every history and word."""
    padded = [[BEGIN, *sentence, END] for sentence in text]
    predicted = [*WORDS, END]

    def occurrences(n: int) -> Counter[tuple[str, ...]]:
        return Counter(tuple(s[i : i + n]) for s in padded for i in range(len(s) - n + 1))

    def counts(n: int) -> dict[tuple[str, ...], int]:
        if n == order:
            found = dict(occurrences(n))
        else:
            contexts = defaultdict(set)
            for gram in occurrences(n + 1):
                contexts[gram[1:]].add(gram[0])
            found = {gram: len(before) for gram, before in contexts.items()}
            found |= {gram: count for gram, count in occurrences(n).items() if gram[0] == BEGIN}
        return {gram: count for gram, count in found.items() if gram[-1] != BEGIN}

    def p(gram: tuple[str, ...]) -> float:
        lower = p(gram[1:]) if gram[1:] else 1 / len(predicted)
        table = counts(len(gram))
        ones, twos = (sum(count == k for count in table.values()) for k in (1, 2))
        discount = ones / (ones + 2 * twos) if ones and twos else 0.5
        follow = {g: count for g, count in table.items() if g[:-1] == gram[:-1]}
        if not follow:
            return lower
        all_of_it = sum(follow.values())
        return (max(follow.get(gram, 0) - discount, 0) + discount * len(follow) * lower) / all_of_it

    return {
        (*history, word): p((*history, word))
        for history in itertools.product((BEGIN, *WORDS), repeat=order - 1)
        for word in predicted
    }


@pytest.mark.parametrize("order", [1, 2, 3])
def test_kneser_ney_is_the_literal_formula(order: int) -> None:
    model = kneser_ney(TEXT, WORDS, order)
    for gram, expected in literal_kneser_ney(TEXT, order).items():
        if BEGIN not in gram[1:]:
            assert probability(model, *gram) == pytest.approx(expected, rel=1e-9), gram


def sums(model: NGramModel) -> list[float]:
    inner = [index for index, word in enumerate(model.words) if word != BEGIN]
    histories = itertools.chain.from_iterable(
        itertools.product(range(len(model.words)), repeat=n) for n in range(model.order)
    )
    return [
        float(np.exp(model.log_prob(np.array([(*history, word) for word in inner]))).sum())
        for history in histories
    ]


@settings(max_examples=25, deadline=None)
@given(SENTENCES, SENTENCES, st.sampled_from([1, 2, 3]), st.floats(0.01, 0.99), st.floats(0, 0.5))
def test_every_history_sums_to_one(
    first: list[list[str]], second: list[list[str]], order: int, share: float, threshold: float
) -> None:
    one, other = kneser_ney(first, WORDS, order), kneser_ney(second, WORDS, 3)
    both = mixed(one, other, share)
    for model in (one, other, both, pruned(both, threshold), restricted(both, ["a", "b", "c", "new"])):
        assert sums(model) == pytest.approx([1.0] * len(sums(model)), abs=1e-6)


def test_mixed_is_linear_where_either_knows_the_ngram() -> None:
    one, other = kneser_ney(TEXT[:2], WORDS, 2), kneser_ney(TEXT[2:], WORDS, 3)
    both = mixed(one, other, 0.3)
    assert len(both.grams[2]) == len(other.grams[2])
    for known in (*one.grams, *other.grams):
        inner = known[known[:, -1] != one.words.index(BEGIN)]
        expected = 0.3 * np.exp(one.log_prob(inner)) + 0.7 * np.exp(other.log_prob(inner))
        assert np.exp(both.log_prob(inner)) == pytest.approx(expected, rel=1e-9)


def test_pruning_drops_what_changes_the_model_least_first() -> None:
    model = kneser_ney(TEXT, WORDS, 3)
    sizes = [sum(map(len, pruned(model, threshold).grams)) for threshold in (0.0, 1e-3, 1e-2, 1e-1, 1e3)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == sum(map(len, model.grams)) and sizes[-1] == len(model.words) > 0
    assert len(set(sizes)) > 3


def test_pruning_loss_is_the_relative_entropy() -> None:
    model = kneser_ney(TEXT, WORDS, 2)
    a, b = model.words.index("a"), model.words.index("b")
    keep = ~(model.grams[1] == [a, b]).all(axis=1)
    from voxveil.utility.language.ngrams import _losses, with_backoffs

    without = with_backoffs(
        model.words, [model.grams[0], model.grams[1][keep]], [model.log_p[0], model.log_p[1][keep]]
    )
    entropy = probability(model, "a") * sum(
        probability(model, "a", w) * math.log(probability(model, "a", w) / probability(without, "a", w))
        for w in (*WORDS, END)
    )
    found = _losses(model.cut(1), model.grams[1], model.log_p[1])[~keep]
    assert found == pytest.approx([entropy], rel=1e-9)


def test_restriction_keeps_ratios_and_gives_new_words_little() -> None:
    model = kneser_ney(TEXT, WORDS, 2)
    less = restricted(model, ["a", "b", "new"])
    assert set(less.words) == {"a", "b", "new", BEGIN, END}
    assert probability(less, "a") / probability(less, "b") == pytest.approx(
        probability(model, "a") / probability(model, "b")
    )
    assert 0 < probability(less, "new") <= min(probability(less, "a"), probability(less, "b"))


def test_arpa_says_the_same() -> None:
    model = kneser_ney(TEXT, WORDS, 3)
    lines = arpa(model).splitlines()
    assert lines[1:4] == [f"ngram {n}={len(model.grams[n - 1])}" for n in (1, 2, 3)]
    found = {line.split("\t")[1]: float(line.split("\t")[0]) for line in lines if "\t" in line}
    assert len(found) == sum(map(len, model.grams))
    assert 10 ** found["a b"] == pytest.approx(probability(model, "a", "b"), rel=1e-4)


@pytest.mark.parametrize(
    ("text", "order", "message"),
    [
        ([], 2, "at least one sentence"),
        ([["a"]], 4, "must be 1, 2 or 3, got 4"),
        ([["x"]], 2, "word 'x' is not in the vocabulary"),
    ],
)
def test_what_cannot_be_estimated(text: list[list[str]], order: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kneser_ney(text, WORDS, order)


def test_models_of_other_words_are_not_mixed() -> None:
    with pytest.raises(InputError, match="same words"):
        mixed(kneser_ney(TEXT, WORDS, 2), kneser_ney(TEXT, [*WORDS, "e"], 2), 0.5)
