"""Back-off n-gram models as arrays: look-up, normalization, mixing, pruning, ARPA.

An n-gram is a row of word indices, oldest word first. A model of order N knows some n-grams of each
length up to N; what it does not know backs off: p(w | h) = b(h) p(w | h without its oldest word).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError

__all__ = ["BEGIN", "END", "NGramModel", "arpa", "mixed", "pruned", "restricted", "with_backoffs"]

BEGIN, END = "<s>", "</s>"

Grams = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Bits of one word in the number of an n-gram: three of them fit 63.
_BITS = 21
_LOWEST = math.log(1e-99)
#: Words of a sentence, about: how often one begins.
_SENTENCE = 20.0
#: Smallest share that backing off keeps, so that sums rounded above 1 leave a number.
_SMALLEST_MASS = 1e-9


@dataclass(frozen=True)
class NGramModel:
    """A back-off model; every word is a 1-gram, every history of an n-gram an (n-1)-gram.

    Attributes:
        words: All words; ``<s>`` and ``</s>`` are among them.
        grams: (n, k) word indices for k = 1 to the order, rows sorted.
        log_p: (n,) natural logarithms of p(last word | the others), by k.
        log_b: (n,) natural logarithms of the back-off weights, by k; none for the highest.
    """

    words: tuple[str, ...]
    grams: tuple[Grams, ...]
    log_p: tuple[Floats, ...]
    log_b: tuple[Floats, ...]

    @property
    def order(self) -> int:
        """Words of the longest n-gram."""
        return len(self.grams)

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(_numbers(rows) for rows in self.grams)

    def _find(self, rows: Grams) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the index of each row in the n-grams of its length, and whether it is present."""
        return _places(self._numbers[rows.shape[1] - 1], _numbers(rows))

    def cut(self, order: int) -> NGramModel:
        """Return the model's n-grams of up to ``order`` words."""
        return NGramModel(self.words, self.grams[:order], self.log_p[:order], self.log_b[: order - 1])

    def log_prob(self, grams: Grams) -> Floats:
        """Return log p(last word | the words before it) of (n, k) rows, k at least 1.

        Words further back than the order reaches are ignored.
        """
        grams = grams[:, -self.order :]
        length = grams.shape[1]
        places, known = self._find(grams)
        result = _where_known(self.log_p[length - 1], places, known)
        if length > 1 and not known.all():
            missing = grams[~known]
            result[~known] = self.backoff(missing[:, :-1]) + self.log_prob(missing[:, 1:])
        return result

    def backoff(self, histories: Grams) -> Floats:
        """Return log b(h) of (n, k) rows; 0 for a history that begins no longer n-gram."""
        length = histories.shape[1]
        places, known = self._find(histories)
        return _where_known(self.log_b[length - 1], places, known)


def with_backoffs(words: Sequence[str], grams: Sequence[Grams], log_p: Sequence[Floats]) -> NGramModel:
    """Return the model with these probabilities and normalized back-off weights.

    Args:
        words: All words.
        grams: (n, k) rows by k; the 1-grams are all words in order.
        log_p: (n,) by k. 1-grams are scaled to sum to 1 over all but ``<s>``, which nothing predicts.
    """
    words = tuple(words)
    if len(words) >= 1 << _BITS or len(grams) > 3:
        raise InputError(f"n-gram models have up to {1 << _BITS} words and order 3, got {len(words)}")
    if not {BEGIN, END} <= set(words):
        raise InputError(f"n-gram models need the words {BEGIN} and {END}")
    first = np.array(log_p[0], np.float64)
    first[words.index(BEGIN)] = -np.inf
    first -= np.logaddexp.reduce(first)
    first[words.index(BEGIN)] = _LOWEST
    kept_grams, kept_p = [np.arange(len(words))[:, None]], [first]
    kept_b: list[Floats] = []
    for rows, logs in zip(grams[1:], log_p[1:], strict=True):
        order = np.argsort(_numbers(rows), kind="stable")
        rows, logs = rows[order], np.asarray(logs, np.float64)[order]
        shorter = NGramModel(words, tuple(kept_grams), tuple(kept_p), tuple(kept_b))
        free, lower_free = _free_mass(shorter, rows, logs)
        kept_b.append(np.log(free) - np.log(lower_free))
        kept_grams.append(rows)
        kept_p.append(logs)
    return NGramModel(words, tuple(kept_grams), tuple(kept_p), tuple(kept_b))


def restricted(model: NGramModel, words: Sequence[str]) -> NGramModel:
    """Return the model of ``words`` alone: n-grams with other words go, their share is spread.

    Args:
        model: A model.
        words: What to keep; ``<s>`` and ``</s>`` are kept anyway. Words that the model lacks get the
            probability of its rarest word.
    """
    kept = tuple(sorted({*words, BEGIN, END}))
    index_of = {word: index for index, word in enumerate(kept)}
    new = np.array([index_of.get(word, -1) for word in model.words])
    first = np.full(len(kept), model.log_p[0][model.log_p[0] > _LOWEST].min())
    first[new[new >= 0]] = model.log_p[0][new >= 0]
    grams, log_p = [np.arange(len(kept))[:, None]], [first]
    for rows, logs in zip(model.grams[1:], model.log_p[1:], strict=True):
        moved = new[rows]
        inside = (moved >= 0).all(axis=1)
        grams.append(moved[inside])
        log_p.append(logs[inside])
    return with_backoffs(kept, grams, log_p)


def mixed(first: NGramModel, second: NGramModel, share: float) -> NGramModel:
    """Return the linear interpolation ``share`` p_first + (1 - share) p_second on all their n-grams.

    Args:
        first: A model.
        second: A model of the same words.
        share: In [0, 1].
    """
    if first.words != second.words:
        raise InputError("n-gram models can be mixed only over the same words")
    grams, log_p = [], []
    for length in range(1, max(first.order, second.order) + 1):
        rows = [model.grams[length - 1] for model in (first, second) if model.order >= length]
        union = np.unique(np.concatenate(rows), axis=0) if len(rows) == 2 else rows[0]
        grams.append(union)
        with np.errstate(divide="ignore"):
            log_p.append(
                np.logaddexp(
                    np.log(share) + first.log_prob(union), np.log(1.0 - share) + second.log_prob(union)
                )
            )
    return with_backoffs(first.words, grams, log_p)


def pruned(model: NGramModel, threshold: float) -> NGramModel:
    """Drop the n-grams whose loss changes the model least.

    An n-gram goes if dropping it raises the perplexity of the model by less than the share
    ``threshold`` (Stolcke 1998, Entropy-based pruning of backoff language models), the longest first.

    Args:
        model: A model.
        threshold: At least 0, e.g. 1e-8.
    """
    grams, log_p = list(model.grams), list(model.log_p)
    for length in range(model.order, 1, -1):
        rows, logs = grams[length - 1], log_p[length - 1]
        loss = _losses(model.cut(length - 1), rows, logs)
        keep = np.expm1(loss) >= threshold
        if length < model.order:
            # A history of what is kept stays, or the longer n-gram could not be reached.
            histories = np.unique(grams[length][:, :-1], axis=0)
            keep |= _places(_numbers(histories), _numbers(rows))[1]
        grams[length - 1], log_p[length - 1] = rows[keep], logs[keep]
    return with_backoffs(model.words, grams, log_p)


def _losses(shorter: NGramModel, rows: Grams, logs: Floats) -> Floats:
    """Return the relative entropy (nat) between the model and the model without each n-gram."""
    parents = _parents(shorter, rows)
    free, lower_free = _free_mass(shorter, rows, logs)
    lower = shorter.log_prob(rows[:, 1:])
    before = (np.log(free) - np.log(lower_free))[parents]
    after = np.log(free[parents] + np.exp(logs)) - np.log(lower_free[parents] + np.exp(lower))
    history = np.zeros(len(rows))
    for length in range(1, rows.shape[1]):
        part = rows[:, :length]
        # Nothing predicts <s>: every sentence has one.
        begins = (part[:, -1] == shorter.words.index(BEGIN)) & (length == 1)
        history += np.where(begins, -math.log(_SENTENCE), shorter.log_prob(part))
    change = np.exp(logs) * (lower + after - logs) + free[parents] * (after - before)
    return np.asarray(np.maximum(-np.exp(history) * change, 0.0))


def _free_mass(shorter: NGramModel, rows: Grams, logs: Floats) -> tuple[Floats, Floats]:
    """Return, by history, what its n-grams leave of 1, and what they would leave by the shorter model."""
    parents = _parents(shorter, rows)
    count = len(shorter.grams[-1])
    left = [
        np.maximum(1.0 - np.bincount(parents, np.exp(part), minlength=count), _SMALLEST_MASS)
        for part in (logs, shorter.log_prob(rows[:, 1:]))
    ]
    return left[0], left[1]


def _parents(shorter: NGramModel, rows: Grams) -> NDArray[np.int64]:
    places, known = shorter._find(rows[:, :-1])
    if not known.all():
        raise InputError("an n-gram has a history that the model does not know")
    return places


def _numbers(rows: Grams) -> NDArray[np.int64]:
    result = np.zeros(len(rows), np.int64)
    for column in rows.T:
        result = (result << _BITS) | column
    return result


def _places(
    known: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of each wanted number in the sorted known ones, and whether it is present."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return places, known[places] == wanted


def _where_known(values: Floats, places: NDArray[np.int64], known: NDArray[np.bool_]) -> Floats:
    """Return the values at the known places, 0 elsewhere."""
    result: Floats = np.zeros(len(places))
    result[known] = values[places[known]]
    return result


def arpa(model: NGramModel) -> str:
    """Return the model as an ARPA file (logarithms to base 10)."""
    lines = ["\\data\\"]
    lines += [f"ngram {length}={len(rows)}" for length, rows in enumerate(model.grams, 1)]
    words = np.array(model.words, object)
    for length, (rows, logs) in enumerate(zip(model.grams, model.log_p, strict=True), 1):
        lines += ["", f"\\{length}-grams:"]
        text = [" ".join(names) for names in words[rows]]
        values = logs / math.log(10.0)
        if length < model.order:
            weights = model.log_b[length - 1] / math.log(10.0)
            rows_out = zip(values, text, weights, strict=True)
            lines += [f"{p:.6f}\t{name}\t{weight:.6f}" for p, name, weight in rows_out]
        else:
            lines += [f"{p:.6f}\t{name}" for p, name in zip(values, text, strict=True)]
    return "\n".join([*lines, "", "\\end\\", ""])
