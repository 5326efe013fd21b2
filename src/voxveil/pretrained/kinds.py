"""Interfaces of loaded models, one for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["NaturalnessJudge", "SpeakerModel", "SpeechRecognizer", "TimedWord"]


class SpeakerModel(Protocol):
    """A network that maps a recording to one vector of the speaker's voice."""

    @property
    def size(self) -> int:
        """Number of values E of an embedding."""

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of a clip of (n,) samples at 16 kHz called ``name``."""


@dataclass(frozen=True)
class TimedWord:
    """A recognized word with its start and end in seconds."""

    word: str
    start: float
    end: float


class SpeechRecognizer(Protocol):
    """A recognizer of words."""

    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words of (n,) samples at 16 kHz called ``name``, separated by blanks."""

    def recognize_words(self, audio: NDArray[Any], name: str) -> Sequence[TimedWord]:
        """Return the words with their times."""


class NaturalnessJudge(Protocol):
    """A network that predicts the mean opinion score (MOS) of listeners, from 1 to 5."""

    def score(self, audio: NDArray[np.float32], name: str) -> float:
        """Return the predicted MOS of (n,) samples at 16 kHz called ``name``."""


class TorchSpeakerModel(SpeakerModel, Protocol):
    """A speaker network that can be trained further."""

    @property
    def network(self) -> Any:
        """The ``torch.nn.Module``: (batch, frames, bands) features to (batch, E)."""

    def features(self, audio: Any) -> Any:
        """Return (batch, frames, bands) features of (batch, samples) audio."""
