"""Fixed public distribution over word strings with integer weights: exact draws and exact probabilities.

A back-off n-gram model of order N in the form of a mixture. With words oldest first, the next word w after
a history h has the probability

    pi(w | h) = (weight(h, w) + rest(h) pi(w | h without its oldest word)) / 2^48,
    rest(h) = 2^48 - sum over w of weight(h, w),

with rest(h) = 2^48 for a history without weights; the weights of the empty history sum to 2^48. A draw
takes one masked 64-bit word for each level that it visits, so its distribution is this one exactly. The
end-of-string symbol is drawn like a word. A string ends at ``longest`` words at the latest, and the first
draw of a string yields the empty string with a further probability of ``empty`` / 2^48.

Every probability is an integer over a power of two and is returned as a fraction without rounding. Weights
are public and depend on no recording: :mod:`voxveil.utility.language.integer_weights` makes them of public
text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.discrete import Words as RandomWords
from voxveil.privacy.words import Words
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError, VoxveilError

__all__ = ["BITS", "END", "TOTAL", "Level", "WordLanguage", "read_language", "write_language"]

#: Weights of a history sum to 2^48: a share in double precision is a whole number of them.
BITS = 48
TOTAL = 1 << BITS
#: Identifier of the end of a string; words have 1 to V, and V + 1 stands before the first one.
END = 0

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """Weights of histories of one length.

    Attributes:
        keys: (n,) numbers of the histories, rising (:meth:`WordLanguage.key`).
        starts: (n + 1,) where the rows of the histories begin.
        successors: (m,) identifiers of words, rising within a row.
        weights: (m,) int64, above 0, of sum at most 2^48 in a row.
    """

    keys: Ids
    starts: Ids
    successors: Ids
    weights: Ids

    @cached_property
    def cumulative(self) -> Ids:
        """(m + 1,) running sums of the weights modulo 2^64, whose differences within a row are right."""
        with np.errstate(over="ignore"):
            return np.concatenate([[0], np.cumsum(self.weights)])

    @cached_property
    def sums(self) -> Ids:
        """(n + 1,) sums of the rows, and a 0 for histories without weights."""
        with np.errstate(over="ignore"):
            return np.append(self.cumulative[self.starts[1:]] - self.cumulative[self.starts[:-1]], 0)

    def rows(self, keys: Ids) -> Ids:
        """Return the row of each history, n for one without weights."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, rows, len(self.keys))

    def weight(self, rows: Ids, successors: Ids) -> Ids:
        """Return the weight of each successor in each row; 0 where it has none."""
        first, last = self._bounds(rows)
        index = self._bisected(first, last, lambda middle: self.successors[middle] < successors)
        found = index < last
        found[found] = self.successors[index[found]] == successors[found]
        return np.where(found, self.weights[np.where(found, index, 0)] if len(self.weights) else 0, 0)

    def chosen(self, rows: Ids, shares: Ids) -> Ids:
        """Return the successor of each row that a share below the row's sum falls on."""
        first, last = self._bounds(rows)
        base = self.cumulative[first]
        with np.errstate(over="ignore"):
            index = self._bisected(first, last, lambda middle: self.cumulative[middle + 1] - base <= shares)
        return self.successors[index]

    def _bounds(self, rows: Ids) -> tuple[Ids, Ids]:
        ends = np.append(self.starts, self.starts[-1])
        return ends[rows], ends[rows + 1]

    def _bisected(self, first: Ids, last: Ids, below: Callable[[Ids], Any]) -> Ids:
        """Return the first place of each [first, last) at which ``below`` does not hold, ``last`` if none."""
        low, high = first.copy(), last.copy()
        while (active := low < high).any():
            middle = np.where(active, (low + high) // 2, 0)
            under = active & below(middle)
            low, high = np.where(under, middle + 1, low), np.where(active & ~under, middle, high)
        return low


@dataclass(frozen=True)
class WordLanguage:
    """A distribution over strings of at most ``longest`` words.

    Attributes:
        words: The vocabulary, sorted, in the normal form of :class:`~voxveil.privacy.words.Words`.
        levels: Weights by length of the history, from 0 (one row, all words and the end) on.
        longest: Words of the longest string, at least 1.
        empty: Weight of the empty string at the first draw, 0 to 2^48.
    """

    words: tuple[str, ...]
    levels: tuple[Level, ...]
    longest: int
    empty: int = 0

    def __post_init__(self) -> None:
        """Check that the weights are a distribution.

        Raises:
            InputError: Naming the first fault.
        """
        Words(self.words)
        size = len(self.words)
        if list(self.words) != sorted(set(self.words)) or not self.words:
            raise InputError("language: its words must be sorted, different, and at least one")
        if self.longest < 1 or not 0 <= self.empty <= TOTAL:
            raise InputError(
                f"language: longest must be at least 1 and empty 0 to 2^48, got {self.longest}, {self.empty}"
            )
        if not 1 <= len(self.levels) <= 3 or (size + 2) ** (len(self.levels) - 1) >= 2**63:
            raise InputError(f"language: orders 1 to 3 are known, got {len(self.levels)} of {size} words")
        for length, level in enumerate(self.levels):
            if fault := _fault(level, size, length):
                raise InputError(f"language: weights of histories of {length} words {fault}")

    @property
    def order(self) -> int:
        """Words of the longest n-gram."""
        return len(self.levels)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Identifiers by word, 1 to V."""
        return {word: number for number, word in enumerate(self.words, 1)}

    @cached_property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 over words, weights and limits."""
        found = hashlib.sha256("\n".join((*self.words, str(self.longest), str(self.empty))).encode())
        for level in self.levels:
            for part in (level.keys, level.starts, level.successors, level.weights):
                found.update(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes())
        return found.hexdigest()[:16]

    def encode(self, words: Sequence[str]) -> tuple[int, ...] | None:
        """Return the identifiers of a string; None where it is too long or a word is not known."""
        known = self.ids
        if len(words) > self.longest or any(word not in known for word in words):
            return None
        return tuple(known[word] for word in words)

    def decode(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the words of identifiers."""
        return tuple(self.words[number - 1] for number in ids)

    def key(self, histories: Ids) -> Ids:
        """Return the numbers of (n, k) histories, oldest word first."""
        result = np.zeros(len(histories), np.int64)
        for column in histories.T:
            result = result * (len(self.words) + 2) + column
        return result

    def context(self, before: Sequence[int] = ()) -> tuple[int, ...]:
        """Return the history of a string's first word, ``order`` - 1 identifiers.

        Args:
            before: Public words that precede the string; empty = it begins a sentence.
        """
        begin = len(self.words) + 1
        padded = (*[begin] * (self.order - 1), *before)
        return padded[len(padded) - (self.order - 1) :]

    def draw(self, count: int, words: RandomWords, before: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """Return independent strings as identifiers.

        Args:
            count: At least 0.
            words: Where the randomness comes from.
            before: As :meth:`context` takes.
        """
        drawn = np.zeros((count, self.longest), np.int64)
        histories = np.tile(np.array(self.context(before), np.int64), (count, 1))
        active = np.flatnonzero(_masked(words, count) >= self.empty)
        for position in range(self.longest):
            following = self._next(histories[active], words)
            drawn[active, position] = following
            histories[active] = np.concatenate([histories[active], following[:, None]], axis=1)[:, 1:]
            active = active[following != END]
        lengths = (drawn != END).sum(axis=1)
        return [tuple(row[:length].tolist()) for row, length in zip(drawn, lengths, strict=True)]

    def _next(self, histories: Ids, words: RandomWords) -> Ids:
        result = np.zeros(len(histories), np.int64)
        pending = np.arange(len(histories))
        for length in reversed(range(self.order)):
            level = self.levels[length]
            rows = level.rows(self.key(histories[pending][:, self.order - 1 - length :]))
            shares = _masked(words, len(pending))
            inside = shares < level.sums[rows]
            result[pending[inside]] = level.chosen(rows[inside], shares[inside])
            pending = pending[~inside]
        return result

    def probability(self, ids: Sequence[int], before: Sequence[int] = ()) -> Fraction:
        """Return the probability of one string, exactly; arguments as :meth:`probabilities` takes."""
        return self.probabilities([ids], before)[0]

    def probabilities(self, strings: Sequence[Sequence[int]], before: Sequence[int] = ()) -> list[Fraction]:
        """Return the probability of each string, exactly.

        Args:
            strings: Identifiers of at most ``longest`` words each.
            before: As :meth:`context` takes.
        """
        if not strings:
            return []
        parts, lengths = self._parts(strings, before)
        columns = [(weights.tolist(), rests.tolist()) for weights, rests in parts]
        result, step = [], 0
        for string, length in zip(strings, lengths.tolist(), strict=True):
            numerator = TOTAL - self.empty
            for index in range(step, step + length):
                value = 0
                for order, (weights, rests) in enumerate(columns):
                    value = (weights[index] << BITS * order) + rests[index] * value
                numerator *= value
            steps = BITS * self.order * length
            numerator += 0 if string else self.empty << steps
            result.append(Fraction(numerator, 1 << (BITS + steps)))
            step += length
        return result

    def log_probabilities(
        self, strings: Sequence[Sequence[int]], before: Sequence[int] = ()
    ) -> NDArray[np.float64]:
        """Return the natural logarithm of each probability in double precision, for statistics only."""
        if not strings:
            return np.zeros(0)
        parts, lengths = self._parts(strings, before)
        value = np.zeros(int(lengths.sum()))
        for weights, rests in parts:
            value = (weights + rests * value) / TOTAL
        owner = np.repeat(np.arange(len(strings)), lengths)
        with np.errstate(divide="ignore"):
            logs = np.bincount(owner, np.log(value), minlength=len(strings))
            logs += np.log1p(-self.empty / TOTAL)
            empty = np.array([not string for string in strings])
            return np.asarray(np.where(empty, np.logaddexp(logs, np.log(self.empty / TOTAL)), logs))

    def _parts(
        self, strings: Sequence[Sequence[int]], before: Sequence[int]
    ) -> tuple[list[tuple[Ids, Ids]], Ids]:
        """Return weights and rests of every draw of every string by level, and the draws of each string."""
        context, size = self.context(before), len(self.words)
        rows: list[Sequence[int]] = []
        lengths = []
        for string in strings:
            if len(string) > self.longest or any(not 1 <= number <= size for number in string):
                raise InputError(f"language: not a string of at most {self.longest} of its words")
            # Nothing is drawn after the longest string.
            steps = (*string, END)[: self.longest]
            whole = (*context, *steps)
            rows += [whole[start : start + self.order] for start in range(len(steps))]
            lengths.append(len(steps))
        grams = np.array(rows, np.int64)
        parts = []
        for length, level in enumerate(self.levels):
            found = level.rows(self.key(grams[:, self.order - 1 - length : -1]))
            weights = level.weight(found, grams[:, -1])
            parts.append((weights, TOTAL - level.sums[found]))
        return parts, np.array(lengths, np.int64)


def write_language(path: Path, language: WordLanguage) -> None:
    """Write a distribution with its digest as one ``.npz`` of numbers."""
    arrays: dict[str, NDArray[np.generic]] = {
        "words": _bytes("\n".join(language.words)),
        "digest": _bytes(language.digest),
        "limits": np.array([language.longest, language.empty, language.order], np.int64),
    }
    for length, level in enumerate(language.levels):
        for name in _PARTS:
            arrays[f"{name}{length}"] = getattr(level, name)
    write_arrays(path, arrays)


def read_language(path: Path) -> WordLanguage:
    """Read the output of :func:`write_language`.

    Raises:
        InputError: Not such a file, or its content does not have its digest.
    """
    facts = read_arrays(path, ("words", "digest", "limits"))
    try:
        longest, empty, order = (int(value) for value in facts["limits"])
        names = [f"{name}{length}" for length in range(order) for name in _PARTS]
        arrays = {name: np.asarray(part) for name, part in read_arrays(path, names).items()}
        if any(part.dtype != np.int64 or part.ndim != 1 for part in arrays.values()):
            raise ValueError("its weights are not rows of 64-bit integers")
        levels = tuple(Level(*(arrays[f"{name}{k}"] for name in _PARTS)) for k in range(order))
        language = WordLanguage(tuple(_text(facts["words"]).split("\n")), levels, longest, empty)
        if _text(facts["digest"]) != language.digest:
            raise ValueError("its content does not have its digest")
    except (ValueError, TypeError, VoxveilError) as error:
        raise InputError(f"{path}: not a language of words ({error})") from None
    return language


_PARTS = ("keys", "starts", "successors", "weights")


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _text(data: NDArray[np.generic]) -> str:
    return np.asarray(data, np.uint8).tobytes().decode("utf-8")


def _masked(words: RandomWords, count: int) -> Ids:
    return (words(count) & np.uint64(TOTAL - 1)).astype(np.int64)


def _fault(level: Level, size: int, length: int) -> str:
    """Return what is wrong with a level, empty if nothing."""
    keys, starts, successors, weights = (getattr(level, name) for name in _PARTS)
    if len(starts) != len(keys) + 1 or starts[0] != 0 or starts[-1] != len(successors):
        return "do not lie in rows"
    if len(weights) != len(successors) or (np.diff(starts) < 1).any() or (np.diff(keys) < 1).any():
        return "do not lie in rows"
    if len(keys) and not 0 <= keys[0] <= keys[-1] < (size + 2) ** length:
        return "have a history outside the vocabulary"
    inner = np.ones(len(successors), bool)
    inner[starts[:-1]] = False
    if len(successors) and (
        successors.min() < 0 or successors.max() > size or (np.diff(successors)[inner[1:]] < 1).any()
    ):
        return "have a successor outside the vocabulary or twice"
    # A sum in double precision cannot wrap around, the exact one could.
    rough = np.add.reduceat(weights.astype(np.float64), starts[:-1]) if len(keys) else np.zeros(0)
    if len(weights) and (weights.min() < 1 or rough.max() > 2.0 * TOTAL or level.sums.max() > TOTAL):
        return "must be above 0 and sum to 2^48 at most"
    if length == 0 and (len(keys) != 1 or level.sums[0] != TOTAL):
        return "must sum to 2^48"
    return ""
