"""Pronunciations of words: PocketSphinx's dictionary, and espeak-ng for missing words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from voxveil.corpus.espeak import pronounce
from voxveil.corpus.phones import PHONES, SILENCE, pronunciation
from voxveil.runtime.errors import InputError

__all__ = ["Lexicon", "read_dictionary", "word_lexicon"]

#: Pronunciations by word, each a sequence of phones without silence.
Lexicon = Mapping[str, tuple[tuple[str, ...], ...]]


def read_dictionary(path: Path) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Read ``WORD PHONE PHONE ...`` lines; further pronunciations stand as ``WORD(2)``.

    Raises:
        InputError: A line without phones or with one outside the phone set.
    """
    known = set(PHONES) - {SILENCE}
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word, *phones = line.split()
        if not phones or not known.issuperset(phones):
            raise InputError(f"{path}:{number}: must be 'WORD PHONE ...' in the phone set, got {line[:60]!r}")
        name = word.rpartition("(")[0] if word.endswith(")") and "(" in word[1:] else word
        found.setdefault(name, {})[merged(phones)] = None
    return {word: tuple(pronunciations) for word, pronunciations in found.items()}


def word_lexicon(words: Iterable[str], dictionary: Lexicon) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the pronunciations of ``words``; espeak-ng's where the dictionary has none.

    Args:
        words: In lower case.
        dictionary: As :func:`read_dictionary` returns.

    Raises:
        MissingExtraError: A word is not in the dictionary and espeak-ng is not installed.
        InputError: A word that espeak-ng cannot say.
    """
    return {
        word: dictionary[word] if word in dictionary else (merged(pronunciation(pronounce(word), word)),)
        for word in sorted(set(words))
    }


def merged(phones: Sequence[str]) -> tuple[str, ...]:
    """Drop a phone that equals the one before: alignments know no boundary between them."""
    return tuple(phone for index, phone in enumerate(phones) if not index or phones[index - 1] != phone)
