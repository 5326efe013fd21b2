"""The phone set: the 39 phones of CMUdict and ``SIL``, with a mapping from espeak-ng's mnemonics.

espeak-ng's en-us voice has finer symbols (r-coloured vowels, flaps, reduced vowels). One
that stands for two CMU phones is split in time evenly; equal neighbours become one phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from voxveil.corpus.split import Phone
from voxveil.runtime.errors import InputError

__all__ = ["PHONES", "SILENCE", "merge_phones", "phones_from_espeak", "pronunciation"]

SILENCE = "SIL"

#: Label -> position is the class index of the content model; silence comes first.
PHONES: tuple[str, ...] = (
    SILENCE,
    "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH",
    "IY", "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V",
    "W", "Y", "Z", "ZH",
)  # fmt: skip

_ESPEAK = {
    # vowels
    "a": "AE", "aa": "AE", "A:": "AA", "0": "AA", "A@": "AA R", "a#": "AH", "V": "AH", "@": "AH",
    "@2": "AH", "@L": "AH L", "3": "ER", "3:": "ER", "E": "EH", "e@": "EH R", "eI": "EY", "I": "IH",
    "I#": "IH", "I2": "IH", "i": "IY", "i:": "IY", "i@": "IY AH", "i@3": "IH R", "O:": "AO",
    "O2": "AO", "O@": "AO R", "o@": "AO R", "oU": "OW", "OI": "OY", "U": "UH", "U@": "UH R", "u:": "UW",
    "aI": "AY", "aI@": "AY AH", "aI3": "AY ER", "aU": "AW",
    # consonants
    "b": "B", "tS": "CH", "d": "D", "D": "DH", "f": "F", "g": "G", "h": "HH", "dZ": "JH", "k": "K",
    "l": "L", "m": "M", "n": "N", "n-": "AH N", "N": "NG", "p": "P", "r": "R", "r-": "R", "s": "S",
    "S": "SH", "t": "T", "t#": "T", "t2": "T", "?": "T", "T": "TH", "v": "V", "w": "W", "j": "Y",
    "z": "Z", "Z": "ZH",
    # pauses
    "_": SILENCE, "_:": SILENCE, "_!": SILENCE, "_|": SILENCE,
}  # fmt: skip

#: Marks that change how the phone before sounds and last no time of their own.
_MODIFIERS = {"", ";"}


def phones_from_espeak(events: Sequence[tuple[float, str]], seconds: float, name: str) -> list[Phone]:
    """Turn espeak-ng's phoneme events into phones that cover the whole utterance.

    Args:
        events: (start in seconds, mnemonic) in order of time.
        seconds: Length of the utterance.
        name: Utterance id, for messages.

    Returns:
        Phones without gaps from 0 to ``seconds``; neighbours differ.

    Raises:
        InputError: A mnemonic outside the table, which names it.
    """
    marks: list[tuple[float, str]] = [(0.0, SILENCE)]
    for start, mnemonic in events:
        labels = _labels(mnemonic, f"utterance {name}")
        if labels:
            marks.append((min(start, seconds), labels))
    marks.append((seconds, ""))
    pieces: list[tuple[float, float, str]] = []
    for (start, labels), (end, _) in pairwise(marks):
        parts = labels.split()
        step = (end - start) / len(parts)
        pieces += [(start + i * step, start + (i + 1) * step, label) for i, label in enumerate(parts)]
    return merge_phones([piece for piece in pieces if piece[1] > piece[0]])


def pronunciation(mnemonics: Sequence[str], word: str) -> tuple[str, ...]:
    """Return the phones of a word that espeak-ng pronounces as ``mnemonics``.

    Raises:
        InputError: A mnemonic outside the table, which names it.
    """
    labels = " ".join(_labels(mnemonic, f"word {word!r}") for mnemonic in mnemonics).split()
    return tuple(label for label in labels if label != SILENCE)


def _labels(mnemonic: str, where: str) -> str:
    """Return the phones of one mnemonic, empty for a mark that lasts no time of its own."""
    # "'" and "," are primary and secondary stress, "%" and "=" mark unstressed syllables.
    symbol = mnemonic.lstrip("',%=")
    if symbol in _MODIFIERS:
        return ""
    if symbol not in _ESPEAK:
        raise InputError(f"{where}: espeak-ng phoneme {mnemonic!r} is not in the phone table")
    return _ESPEAK[symbol]


def merge_phones(pieces: Sequence[tuple[float, float, str]]) -> list[Phone]:
    """Return phones of (start, end, label) pieces in order; equal neighbours become one."""
    phones: list[Phone] = []
    for start, end, label in pieces:
        if phones and phones[-1].label == label:
            phones[-1] = Phone(phones[-1].start, end - phones[-1].start, label)
        else:
            phones.append(Phone(start, end - start, label))
    return phones
