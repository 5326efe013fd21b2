"""Interfaces of loaded models, one for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from voxveil.pretrained.folder import PretrainedModel

__all__ = [
    "Emotion",
    "EmotionJudge",
    "FeatureModel",
    "NaturalnessJudge",
    "SpeakerModel",
    "SpeechRecognizer",
    "VoiceActivity",
]


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


class FeatureModel(Protocol):
    """A network that was trained without labels and gives frames of features."""

    @property
    def model(self) -> PretrainedModel:
        """The checked folder."""

    @property
    def size(self) -> int:
        """Number of values of a frame."""

    @property
    def stride_seconds(self) -> float:
        """Time between two frames."""

    def frames(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (T, size) features of (n,) samples at 16 kHz called ``name``."""


@dataclass(frozen=True)
class Emotion:
    """The emotion of an utterance.

    Attributes:
        label: The most probable one.
        probabilities: Probability of each, by label; they sum to 1.
    """

    label: str
    probabilities: Mapping[str, float]

    @classmethod
    def of(cls, probabilities: Mapping[str, float]) -> Self:
        """Return the most probable emotion of several, the first where two are equal."""
        return cls(max(probabilities, key=lambda label: probabilities[label]), probabilities)


class EmotionJudge(Protocol):
    """A classifier of a speaker's emotion."""

    def classify(self, audio: NDArray[np.float32], name: str) -> Emotion:
        """Return the emotion of (n,) samples at 16 kHz called ``name``."""


class VoiceActivity(Protocol):
    """A detector of speech."""

    def spans(self, audio: NDArray[np.float32], name: str) -> Sequence[tuple[int, int]]:
        """Return where there is speech in (n,) samples at 16 kHz called ``name``.

        Each span is (start, stop) in samples, stop not included; spans are sorted and do not touch.
        """
