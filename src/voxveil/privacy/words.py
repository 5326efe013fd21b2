"""Recognized words as a released value: epsilon 0 under the invariant of the recognizer that found them.

:class:`Words` is one flat sequence of lexical words. It has no capitals and no punctuation, which follow
pauses and intonation in some recognizers, no segments, no times, no confidence and no language. The mechanism
:class:`RecognizedWords` takes a recognizer's text and releases its words; nothing else of a recording passes.

For two recordings with equal recognized words the released words are equal, so their probabilities are too:
the release is 0-DP under the invariant ``recognized_words@DIGEST`` (:mod:`voxveil.privacy.invariants`). Of
recordings with other words, and of what the words themselves tell, it promises nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voxveil.privacy.invariants import GIVEN_WORDS, length_invariant, words_invariant
from voxveil.privacy.loss import Loss
from voxveil.privacy.released import Released, seal
from voxveil.runtime.errors import PrivacyError

__all__ = ["NORMAL_FORM", "RecognizedWords", "Words", "recognition_digest"]

#: Version of the normal form of :class:`Words`; part of every digest.
NORMAL_FORM = "1"
#: Hexadecimal digits of a digest.
_DIGITS = 16
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
#: Unicode categories of lower-case letters and of letters without case; stress marks and the like are others.
_LETTERS = ("Ll", "Lo")
#: Characters that are written for an apostrophe.
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))


@dataclass(frozen=True, slots=True)
class Words:
    """One flat sequence of lexical words in normal form.

    Attributes:
        sequence: Words of lower-case letters, with apostrophes between letters; may be empty.
    """

    sequence: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that nothing but lexical words is in the sequence."""
        # A subclass of str or tuple could carry more than its characters.
        if type(self.sequence) is not tuple or any(type(word) is not str for word in self.sequence):
            raise PrivacyError("words must be a tuple of plain text")
        for word in self.sequence:
            if _lexical(word) != (word,):
                raise PrivacyError(
                    "a word must be lower-case letters, with apostrophes between them, got one with another"
                    f" character among its {len(word)}"
                )

    @staticmethod
    def of(text: str) -> Words:
        """Return the words of a text in normal form, which is a function of the text alone.

        NFKC, lower case; whatever is neither a letter nor an apostrophe between letters separates words, so
        digits and combining marks are lost: spell numbers out first. :attr:`text` is in normal form.
        """
        if not isinstance(text, str):
            raise PrivacyError(f"recognized words must be text, got {type(text).__name__}")
        return Words(_lexical(text))

    @property
    def text(self) -> str:
        """The words with a space between them."""
        return " ".join(self.sequence)

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.sequence)


@dataclass(frozen=True)
class RecognizedWords:
    """Releases the words that one recognizer finds, with epsilon 0 under their invariant.

    Attributes:
        digest: Of the recognizer's settings, by :func:`recognition_digest`.
        length: Seconds to whose multiples the length of recordings is released too, 0 for the sample count
            itself; None releases no length.
    """

    digest: str
    name: str = "recognized_words"
    length: float | None = None

    def __post_init__(self) -> None:
        """Check digest and length."""
        words_invariant(self.digest)
        if self.length is not None:
            length_invariant(self.length)

    def loss_for(self, shape: tuple[int, ...] = (), *, secret: bool = True) -> Loss:
        """Return epsilon 0 per utterance under ``recognized_words@DIGEST``; there is no noise to seed."""
        invariants = frozenset({words_invariant(self.digest)})
        if self.length is not None:
            invariants |= {length_invariant(self.length)}
        return Loss("pure", 0.0, "utterance", 0.0, self.name, "1", GIVEN_WORDS, invariants=invariants)

    def release(self, text: str) -> Released[Words]:
        """Release the words of a recognizer's text.

        Args:
            text: What the recognizer of :attr:`digest` found in one recording, all of it.
        """
        return seal(Words.of(text), self.loss_for())

    def release_length(self, samples: int, rate: int) -> Released[int]:
        """Release the sample count of a recording, rounded up to a multiple of :attr:`length` seconds.

        Args:
            samples: Of the recording.
            rate: Samples in a second.

        Raises:
            PrivacyError: This mechanism does not declare the invariant of length.
        """
        if self.length is None:
            raise PrivacyError("the length of a recording is not among the invariants of this release")
        step = max(1, round(self.length * rate))
        return seal(-(-samples // step) * step, self.loss_for())


def recognition_digest(
    *,
    recognizer: str,
    weights: str,
    segmentation: Mapping[str, Any],
    decoding: Mapping[str, Any],
    normalization: Mapping[str, Any],
) -> str:
    """Return the digest of everything that recognized words depend on beside the recording.

    It is the first 16 hexadecimal digits of the SHA-256 over canonical JSON: sorted keys, no spaces, ASCII.

    Args:
        recognizer: Its name and version.
        weights: SHA-256 over its weights.
        segmentation: Settings of the voice activity detector and of how long recordings are cut.
        decoding: Settings of the search: language, beam, thresholds.
        normalization: Settings of what turns its output into text before :meth:`Words.of`.

    Raises:
        PrivacyError: A field is not what it must be.
    """
    if not isinstance(recognizer, str) or not recognizer:
        raise PrivacyError(f"a recognizer needs a name, got {recognizer!r}")
    if not isinstance(weights, str) or not _SHA256.match(weights):
        raise PrivacyError(f"recognizer {recognizer}: weights must be a SHA-256, got {weights!r}")
    settings = {
        "recognizer": recognizer,
        "weights": weights,
        "segmentation": dict(segmentation),
        "decoding": dict(decoding),
        "normalization": dict(normalization),
        "normal_form": NORMAL_FORM,
    }
    try:
        text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PrivacyError(f"recognizer {recognizer}: its settings are not JSON ({error})") from None
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _lexical(text: str) -> tuple[str, ...]:
    # Lower case may decompose and compatibility forms may be capitals: one form before, one after.
    lowered = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    kept = "".join(
        char if char == "'" or unicodedata.category(char) in _LETTERS else " "
        for char in lowered.translate(_APOSTROPHES)
    )
    return tuple(word for word in (piece.strip("'") for piece in kept.split()) if word)
