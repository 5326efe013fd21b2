"""Invariants: functions of a recording that are equal in every pair of neighbours.

Differential privacy under invariants: M is epsilon-DP under a set of invariants if for any two recordings x
and x' on which all of them are equal, P(M(x) in S) <= exp(epsilon) P(M(x') in S) for every set S of outputs
(the promise of the US census of 2020, whose invariants were counts). Fewer pairs are neighbours under more
invariants, so two releases compose under the union of theirs.

* ``length``: the sample count. ``length@1s``: the sample count after padding to a multiple of 1 s.
* ``recognized_words@DIGEST``: the words that one recognizer finds, its errors included. DIGEST is over
  the recognizer's settings (:func:`voxveil.privacy.words.recognition_digest`); two recognizers are two
  invariants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from voxveil.runtime.errors import PrivacyError

__all__ = [
    "GIVEN_WORDS",
    "LENGTH",
    "UNPADDED",
    "condition_text",
    "is_implied",
    "length_invariant",
    "neighbours_text",
    "public_facts",
    "require_invariants",
    "words_invariant",
    "words_of",
]

#: The invariant of the sample count itself.
LENGTH = "length"
#: What every epsilon of a system without padding assumes, also one written before invariants were recorded.
UNPADDED = frozenset({LENGTH})
#: The condition of a promise under an invariant of recognized words.
GIVEN_WORDS = "given the recognized words, errors included"

_QUANTUM = re.compile(r"length@((?:0|[1-9]\d*)(?:\.\d*[1-9])?)s\Z")
_WORDS = re.compile(r"recognized_words@[0-9a-f]{12,64}\Z")


def length_invariant(pad_to: float = 0.0) -> str:
    """Return the invariant of the length of recordings that are padded to a multiple of ``pad_to`` seconds.

    Args:
        pad_to: At least 0, finite; 0 is no padding.

    Raises:
        PrivacyError: Out of range.
    """
    if isinstance(pad_to, bool) or not math.isfinite(pad_to) or pad_to < 0:
        raise PrivacyError(f"a length is padded to a number of seconds of at least 0, got {pad_to!r}")
    return f"length@{Decimal(repr(float(pad_to))).normalize():f}s" if pad_to else LENGTH


def words_invariant(digest: str) -> str:
    """Return the invariant of the words that a recognizer finds.

    Args:
        digest: 12 to 64 hexadecimal digits of a SHA-256 over the recognizer's settings.

    Raises:
        PrivacyError: Not such a digest.
    """
    name = f"recognized_words@{digest}"
    if not _WORDS.match(name):
        raise PrivacyError(f"a recognizer's digest must be 12 to 64 hexadecimal digits, got {digest!r}")
    return name


def require_invariants(values: Any) -> frozenset[str]:
    """Return ``values`` if it is a frozen set of known invariants.

    Raises:
        PrivacyError: Naming what is not one.
    """
    if not isinstance(values, frozenset):
        raise PrivacyError(f"invariants must be a frozen set of names, got {values!r}")
    for value in values:
        if not isinstance(value, str) or not (value == LENGTH or _WORDS.match(value) or _quantum(value)):
            raise PrivacyError(
                "an invariant must be 'length', 'length@QUANTUM' such as length@1s, or"
                f" 'recognized_words@DIGEST', got {value!r}"
            )
    return values


def words_of(invariants: Iterable[str]) -> tuple[str, ...]:
    """Return the invariants of recognized words among some, sorted.

    Without any a promise is unconditional: equal length is assumed by every one, equal words are a condition.
    """
    return tuple(sorted(value for value in invariants if _WORDS.match(value)))


def is_implied(value: str, given: Iterable[str]) -> bool:
    """Return whether an invariant is equal in every pair of recordings in which those given are.

    Equal sample counts are equal after padding too, and equal multiples of 1 s are equal in steps of 2 s.
    """
    assumed, quantum = set(given), _quantum(value)
    if value in assumed or not quantum:
        return value in assumed
    steps = [Decimal(other) for other in map(_quantum, assumed) if other]
    return LENGTH in assumed or any(Decimal(quantum) % step == 0 for step in steps)


def condition_text(invariants: Iterable[str]) -> str:
    """Return the condition of a promise, such as ``given recognized_words@...``; empty without one."""
    words = words_of(invariants)
    return f"given {' and '.join(words)}" if words else ""


def neighbours_text(invariants: Iterable[str]) -> str:
    """Return which pairs of utterances a promise holds for."""
    facts = public_facts(invariants)
    return f"any two utterances{' with equal ' if facts else ''}{' and '.join(facts)}"


def public_facts(invariants: Iterable[str]) -> tuple[str, ...]:
    """Return in words what the invariants are, those of length first."""
    return tuple(_fact(value) for value in sorted(invariants))


def _fact(value: str) -> str:
    quantum = _quantum(value)
    if quantum:
        return f"length in steps of {quantum} s"
    return "sample count" if value == LENGTH else f"recognized words, errors included ({value})"


def _quantum(value: str) -> str:
    found = _QUANTUM.match(value)
    return found[1] if found and float(found[1]) > 0 else ""
