"""Attackers that embed a clip and compare embeddings by LDA, length normalization and PLDA.

One class for all; what differs is the front end: an x-vector network, prosody, or WavLM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.ecapa import train_network
from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup, attacker_facts, training_clips
from voxveil.attack.plda import Plda, fit_plda
from voxveil.corpus.split import Speech
from voxveil.features.speaker.encoder import X_VECTOR, SpeakerEncoder
from voxveil.features.speaker.train import Features, TrainedEncoder
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import Progress

__all__ = ["EmbeddingAttacker", "FrontEnd", "XVector", "load_embedding_attacker", "train_embedding_attacker"]

_PLDA = "plda.npz"
_SCALE = ("scale_mean", "scale_deviation")


class FrontEnd(Protocol):
    """Maps a clip to a vector."""

    @property
    def kind(self) -> str:
        """The attacker's name in paths and tables."""

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, TrainedEncoder | None]:
        """Return the front end, and how its network was trained where it trains one."""

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read what :meth:`save` wrote; ``content`` is ``model.json``."""

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (E,) vector of a 16 kHz clip called ``name``; finite."""

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json`` with ``facts`` in it, and whatever :meth:`raw` needs."""


class XVector:
    """Front end: an x-vector network."""

    kind = "xvector_plda"

    def __init__(self, encoder: SpeakerEncoder) -> None:
        self._encoder = encoder

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, TrainedEncoder | None]:
        """Train the network on public speech."""
        result = train_network(speech, setup, architecture=X_VECTOR, features=Features(mel=True))
        return cls(result.encoder), result

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the network."""
        return cls(SpeakerEncoder.load(folder))

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (E,) unit-norm x-vector of a clip."""
        return self._encoder.embed(audio, name)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write the network."""
        self._encoder.save(folder, facts)


@dataclass(frozen=True)
class EmbeddingAttacker:
    """A front end with its fitted PLDA.

    Attributes:
        front: Makes the vectors.
        speakers: Ids of the public speakers it was trained on, sorted.
        training: State of their speech, ``original`` or ``anonymized``.
        mean: (E,) mean of the training vectors.
        deviation: (E,) their standard deviation, 1 where a value never changes.
        plda: Fitted to the vectors scaled by the two.
    """

    front: FrontEnd
    speakers: Sequence[str]
    training: str
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    plda: Plda

    @property
    def name(self) -> str:
        """The front end's name."""
        return self.front.kind

    @property
    def pretrained(self) -> Mapping[str, str]:
        """Facts of the imported network, for results."""
        return getattr(self.front, "pretrained", {})

    @property
    def backend(self) -> Plda:
        """The PLDA."""
        return self.plda

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (D,) projected vector of a clip."""
        scaled = (self.front.raw(audio, name).astype(np.float64) - self.mean) / self.deviation
        projected: NDArray[np.float32] = self.plda.project(scaled[None])[0].astype(np.float32)
        return projected

    def save(self, folder: Path) -> None:
        """Write front end and ``plda.npz``."""
        self.front.save(Path(folder), attacker_facts(self))
        scale = dict(zip(_SCALE, (self.mean, self.deviation), strict=True))
        write_arrays(Path(folder) / _PLDA, {**self.plda.to_arrays(), **scale})


def train_embedding_attacker(
    front_end: type[FrontEnd], speech: Speech, setup: TrainingSetup
) -> TrainedAttacker:
    """Train a front end and fit the back end to the speech of public speakers.

    Args:
        front_end: Class of the front end.
        speech: At least 2 speakers with 2 utterances each.
        setup: How to train; LDA keeps at most ``setup.params.lda`` dimensions.
    """
    front, result = front_end.train(speech, setup)
    labels = [utterance.speaker for utterance in speech]
    progress = Progress(f"{front.kind} vectors", len(labels), "utterance")
    rows = []
    for done, (name, audio) in enumerate(training_clips(speech), 1):
        rows.append(front.raw(audio, name).astype(np.float64))
        progress.update(done)
    vectors = np.stack(rows)
    mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    plda = fit_plda((vectors - mean) / deviation, labels, setup.params.lda)
    attacker = EmbeddingAttacker(front, speech.speakers, setup.training, mean, deviation, plda)
    if result is None:
        return TrainedAttacker(attacker)
    return TrainedAttacker(attacker, result.curve, result.accuracy)


def load_embedding_attacker(
    front_end: type[FrontEnd], folder: Path, content: dict[str, Any]
) -> EmbeddingAttacker:
    """Read an attacker; ``content`` is its checked ``model.json``."""
    path = Path(folder) / _PLDA
    names = [f"plda_{name}" for name in Plda.__dataclass_fields__]
    arrays = read_arrays(path, [*names, *_SCALE])
    plda = Plda.from_arrays(arrays, str(path))
    mean, deviation = (arrays[name] for name in _SCALE)
    if mean.shape != plda.mean.shape or deviation.shape != plda.mean.shape:
        raise InputError(
            f"{path}: scale_mean and scale_deviation have shapes {mean.shape} and {deviation.shape},"
            f" must be {plda.mean.shape} as plda_mean"
        )
    front = front_end.load(Path(folder), content)
    return EmbeddingAttacker(front, content["speakers"], content["training"], mean, deviation, plda)
