"""N-gram models of public text: interpolated Kneser-Ney smoothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel, with_backoffs

__all__ = ["kneser_ney"]


def kneser_ney(sentences: Sequence[Sequence[str]], words: Sequence[str], order: int) -> NGramModel:
    """Estimate a back-off model by interpolated Kneser-Ney smoothing (Kneser and Ney 1995).

    The highest order counts occurrences, lower ones in how many contexts an n-gram occurs (Chen and
    Goodman 1999, section 2.7). Each order has one discount, n1 / (n1 + 2 n2), with n1 and n2 the
    n-grams that were counted once and twice. 1-grams are interpolated with a uniform distribution, so
    that words that never occur are possible.

    Args:
        sentences: Words of each sentence, without ``<s>`` and ``</s>``.
        words: The vocabulary; must contain every word of the sentences.
        order: 1 to 3.

    Raises:
        InputError: No sentence, a word outside the vocabulary, or an order that is not allowed.
    """
    if not sentences:
        raise InputError("a language model needs at least one sentence")
    if order not in (1, 2, 3):
        raise InputError(f"the order of a language model must be 1, 2 or 3, got {order}")
    vocabulary = tuple(sorted({*words, BEGIN, END}))
    index_of = {word: index for index, word in enumerate(vocabulary)}
    coded = []
    for sentence in sentences:
        for word in sentence:
            if word not in index_of:
                raise InputError(f"word {word!r} is not in the vocabulary of the language model")
        coded.append(np.array([index_of[word] for word in (BEGIN, *sentence, END)], np.int64))
    grams, counts = _counts(coded, order, index_of[BEGIN])
    uniform = np.full(len(vocabulary), 1.0 / (len(vocabulary) - 1))
    uniform[index_of[BEGIN]] = 0.0
    kept: list[NDArray[np.int64]] = [np.arange(len(vocabulary))[:, None]]
    logs: list[NDArray[np.float64]] = []
    model: NGramModel | None = None
    for length in range(1, order + 1):
        rows, seen = grams[length - 1], counts[length - 1].astype(np.float64)
        discount = _discount(counts[length - 1])
        if length == 1:
            probability = discount * len(rows) * uniform
            probability[rows[:, 0]] += seen - discount
            probability /= seen.sum()
        else:
            _, histories = np.unique(rows[:, :-1], axis=0, return_inverse=True)
            histories = histories.reshape(-1)
            total, kinds = np.bincount(histories, seen), np.bincount(histories)
            if model is None:
                raise InputError("an order without a lower one")
            lower = np.exp(model.log_prob(rows[:, 1:]))
            probability = (seen - discount + discount * kinds[histories] * lower) / total[histories]
            kept.append(rows)
        with np.errstate(divide="ignore"):
            logs.append(np.log(probability))
        model = with_backoffs(vocabulary, kept, logs)
    if model is None:
        raise InputError("an empty order")
    return model


def _discount(counts: NDArray[np.int64]) -> float:
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    # Without n-grams counted once nothing tells how much to keep back; a half is the usual choice.
    return once / (once + 2.0 * twice) if once and twice else 0.5


def _counts(
    coded: Sequence[NDArray[np.int64]], order: int, begin: int
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Return n-grams and their (continuation) counts, by length."""
    grams: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.int64]] = []
    for length in range(1, order + 1):
        rows, seen = _occurrences(coded, length)
        if length < order:
            # In how many contexts; what begins with <s> has none before it and keeps its count.
            longer, _ = _occurrences(coded, length + 1)
            contexts, often = np.unique(longer[:, 1:], axis=0, return_counts=True)
            first = rows[:, 0] == begin
            rows = np.concatenate([rows[first], contexts])
            seen = np.concatenate([seen[first], often])
        if length == 1:
            inner = rows[:, 0] != begin
            rows, seen = rows[inner], seen[inner]
        grams.append(rows)
        counts.append(seen)
    return grams, counts


def _occurrences(
    coded: Sequence[NDArray[np.int64]], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    windows = [
        np.lib.stride_tricks.sliding_window_view(codes, length) for codes in coded if len(codes) >= length
    ]
    empty = np.zeros((0, length), np.int64)
    rows, counts = np.unique(np.concatenate([empty, *windows]), axis=0, return_counts=True)
    return rows, counts
