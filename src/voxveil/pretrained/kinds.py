"""Interfaces of loaded models, one for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["NaturalnessJudge", "SpeakerModel", "SpeechRecognizer", "SpeechVoice", "SpokenWords"]


class SpeakerModel(Protocol):
    """A network that maps a recording to one vector of the speaker's voice."""

    @property
    def size(self) -> int:
        """Number of values E of an embedding."""

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of a clip of (n,) samples at 16 kHz called ``name``."""


class SpeechRecognizer(Protocol):
    """A recognizer of words."""

    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words of (n,) samples at 16 kHz called ``name``, separated by blanks."""


class NaturalnessJudge(Protocol):
    """A network that predicts the mean opinion score (MOS) of listeners, from 1 to 5."""

    def score(self, audio: NDArray[np.float32], name: str) -> float:
        """Return the predicted MOS of (n,) samples at 16 kHz called ``name``."""


@dataclass(frozen=True)
class SpokenWords:
    """Words as a voice speaks them.

    Attributes:
        audio: (n,) float32 at 16 kHz, finite.
        words: The words.
        spans: (words, 2) first and last sample (exclusive) of each word, in order.
    """

    audio: NDArray[np.float32]
    words: tuple[str, ...]
    spans: NDArray[np.int64]


class SpeechVoice(Protocol):
    """A text-to-speech voice; its speech depends on the words alone and is the same on every call."""

    def speak(self, words: Sequence[str], samples: int | None = None) -> SpokenWords:
        """Speak lower-case words without punctuation, in exactly ``samples`` samples where that is given."""
