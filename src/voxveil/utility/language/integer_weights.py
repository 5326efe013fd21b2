"""Back-off n-gram models as distributions with integer weights, from public text.

A back-off model gives p(w | h) to some successors of a history and b(h) p(w | shorter h) to the others. As
a mixture the history has weights a(h, w) for some and a rest r(h) for a draw by the shorter history:

    q(w | h) = a(h, w) + r(h) p(w | shorter h),   a(h, w) = max(p(w | h) - r(h) p(w | shorter h), 0).

The r(h) in [0, 1] at which a and r sum to 1 is unique up to where it makes no difference: the sum does not
fall as r rises, is at most 1 at r = 0 and at least 1 at r = 1. Where no maximum is taken, r = b and q = p.
Weights are then cut to multiples of 2^-48, and what is cut goes to the rest. The result *is* the
distribution: nothing that is proven of it depends on how near it is to the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.word_language import END, TOTAL, Level, WordLanguage
from voxveil.privacy.words import Words
from voxveil.runtime.errors import InputError
from voxveil.utility.language import ngrams
from voxveil.utility.language.ngrams import NGramModel
from voxveil.utility.language.word_model import LanguageKnobs, language_model

__all__ = ["lexical_sentences", "public_language", "with_integer_weights"]

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Halvings of an interval that contains r: below a step of 2^-48.
_HALVINGS = 50


def lexical_sentences(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the words of public texts in the normal form of released words; empty texts go."""
    found = (Words.of(text).sequence for text in texts)
    return tuple(words for words in found if words)


def public_language(
    sentences: Sequence[Sequence[str]],
    general: NGramModel | None,
    knobs: LanguageKnobs,
    *,
    longest: int,
    empty: float,
) -> WordLanguage:
    """Return the distribution of public text: the vocabulary is that of the text and of common words.

    Args:
        sentences: As :func:`lexical_sentences` returns, of public text only.
        general: A general model of the same natural language, mixed in; None = the text alone.
        knobs: Order, common words of the general model, weight of the text, pruning.
        longest: Words of the longest string.
        empty: Further probability of the empty string, 0 to 1.

    Raises:
        InputError: No sentence, or ``empty`` out of range.
    """
    if not 0.0 <= empty <= 1.0:
        raise InputError(f"language: the share of the empty string must be 0 to 1, got {empty}")
    domain = {word for sentence in sentences for word in sentence}
    if general is None:
        model = ngrams.pruned(_estimated(sentences, sorted(domain), knobs.order), knobs.prune)
    else:
        order = np.argsort(-general.log_p[0], kind="stable")
        common = (general.words[index] for index in order)
        known = [word for word in common if Words.of(word).sequence == (word,)][: knobs.words]
        model = language_model(general, sentences, sorted(domain.union(known)), knobs)
    return with_integer_weights(model, longest=longest, empty=round(empty * TOTAL))


def with_integer_weights(model: NGramModel, *, longest: int, empty: int = 0) -> WordLanguage:
    """Return a model as a distribution with integer weights.

    Args:
        model: Its words beside ``<s>`` and ``</s>`` are lexical words.
        longest: Words of the longest string.
        empty: Weight of 2^48 of the empty string at the first draw.
    """
    words = tuple(sorted(set(model.words) - {ngrams.BEGIN, ngrams.END}))
    number = {word: index for index, word in enumerate(words, 1)}
    number |= {ngrams.END: END, ngrams.BEGIN: len(words) + 1}
    ids = np.array([number[word] for word in model.words], np.int64)
    levels = [_first(model, ids, len(words))]
    for length in range(1, model.order):
        levels.append(_level(model, ids, length))
    return WordLanguage(words, tuple(levels), longest, empty)


def _estimated(sentences: Sequence[Sequence[str]], words: Sequence[str], order: int) -> NGramModel:
    from voxveil.utility.language.estimation import kneser_ney

    return kneser_ney(sentences, words, order)


def _first(model: NGramModel, ids: Ids, size: int) -> Level:
    shares = np.zeros(size + 2)
    shares[ids] = np.exp(model.log_p[0])
    # A word of share 0 could never be kept: each has one part of 2^48 at least.
    weights = np.maximum(np.floor(shares[: size + 1] * TOTAL).astype(np.int64), 1)
    weights[weights.argmax()] += TOTAL - weights.sum()
    return Level(np.zeros(1, np.int64), np.array([0, size + 1], np.int64), np.arange(size + 1), weights)


def _level(model: NGramModel, ids: Ids, length: int) -> Level:
    """Return the weights of the histories of ``length`` words."""
    base = len(model.words)
    rows = model.grams[length]
    chances = np.exp(model.log_p[length])
    lower = np.exp(model.log_prob(rows[:, 1:]))
    keys = np.zeros(len(rows), np.int64)
    for column in ids[rows[:, :-1]].T:
        keys = keys * base + column
    order = np.lexsort((ids[rows[:, -1]], keys))
    keys, successors = keys[order], ids[rows[:, -1]][order]
    _, owner = np.unique(keys, return_inverse=True)
    weights = _mixture(chances[order], lower[order], owner.reshape(-1))
    kept = weights > 0
    keys, starts = np.unique(keys[kept], return_index=True)
    starts = np.append(starts, kept.sum()).astype(np.int64)
    return Level(keys, starts, successors[kept], weights[kept])


def _mixture(chances: Floats, lower: Floats, owner: Ids) -> Ids:
    """Return the weights a of 2^48.

    Args:
        chances: (m,) p(w | h).
        lower: (m,) p(w | shorter h).
        owner: (m,) number of the history.
    """
    count = int(owner.max(initial=-1)) + 1
    low, high = np.zeros(count), np.ones(count)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excess = np.bincount(owner, np.maximum(chances - middle[owner] * lower, 0.0), minlength=count)
        under = excess + middle < 1.0
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    shares = np.maximum(chances - high[owner] * lower, 0.0)
    # Sums that rounding puts above 1 are scaled back by a part in 2^40.
    sums = np.bincount(owner, shares, minlength=count)
    shares = shares / np.maximum(sums * (1.0 + 2.0**-40), 1.0)[owner]
    return np.asarray(np.floor(shares * TOTAL), np.int64)
