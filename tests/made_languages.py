"""Small distributions over word strings with random integer weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from voxveil.privacy.word_language import BITS, TOTAL, Level, WordLanguage


def made_language(
    seed: int, words: Sequence[str] = ("a", "b"), order: int = 2, longest: int = 2, empty: int = 0
) -> WordLanguage:
    """Return a language with random weights; half of the histories and successors have none."""
    random = np.random.default_rng(seed)
    size = len(words)
    levels = [_level([0], [np.arange(size + 1)], [_parts(random, size + 1, TOTAL)])]
    for length in range(1, order):
        keys, rows, weights = [], [], []
        for history in itertools.product(range(1, size + 2), repeat=length):
            if random.random() < 0.5:
                continue
            chosen = np.flatnonzero(random.random(size + 1) < 0.5)
            if not len(chosen):
                chosen = np.array([size])
            keys.append(sum(n * (size + 2) ** k for k, n in enumerate(reversed(history))))
            rows.append(chosen)
            # Some rows leave nothing for shorter histories.
            total = TOTAL if random.random() < 0.2 else int(random.integers(len(chosen), TOTAL))
            weights.append(_parts(random, len(chosen), total))
        levels.append(_level(keys, rows, weights))
    return WordLanguage(tuple(words), tuple(levels), longest, empty)


def one_word_language(shares: dict[str, float], longest: int = 1) -> WordLanguage:
    """Return a language of strings of one word each; what the shares leave is the empty string's.

    Args:
        shares: Probability by word, of sum below 1.
        longest: Words of a string; above 1 words are independent.
    """
    words = tuple(sorted(shares))
    weights = np.array([0, *(int(shares[word] * 2**BITS) for word in words)], np.int64)
    weights[0] = TOTAL - weights.sum()
    return WordLanguage(words, (_level([0], [np.arange(len(words) + 1)], [weights]),), longest)


def all_strings(language: WordLanguage) -> list[tuple[int, ...]]:
    """Return every string of at most ``longest`` words of the vocabulary as identifiers."""
    numbers = range(1, len(language.words) + 1)
    return [
        string
        for length in range(language.longest + 1)
        for string in itertools.product(numbers, repeat=length)
    ]


def _parts(random: np.random.Generator, count: int, total: int) -> np.ndarray:
    """Return whole numbers above 0 of a given sum."""
    cuts = np.sort(random.choice(min(total - 1, 2**40), count - 1, replace=False) + 1) if count > 1 else []
    return np.diff([0, *cuts, total]).astype(np.int64)


def _level(keys: list[int], rows: list[np.ndarray], weights: list[np.ndarray]) -> Level:
    starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    joined = [np.concatenate([*parts, []]).astype(np.int64) for parts in (rows, weights)]
    return Level(np.array(keys, np.int64), starts, joined[0], joined[1])
