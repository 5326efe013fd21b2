"""Attackers that embed a clip and compare embeddings by LDA, length normalization and PLDA.

One class for all; what differs is the front end: an x-vector network, prosody, or WavLM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.backends import Backend
from voxveil.attack.clips import training_clips
from voxveil.attack.plda import Plda, fit_plda
from voxveil.corpus.split import Speech
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import Progress

__all__ = ["EmbeddingAttacker", "FrontEnd", "fit_embedding_attacker", "load_embedding_attacker"]

_PLDA = "plda.npz"
_SCALE = ("scale_mean", "scale_deviation")


class FrontEnd(Protocol):
    """Maps a clip to a vector."""

    @property
    def kind(self) -> str:
        """The attacker's name in paths and tables."""

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (E,) vector of a 16 kHz clip called ``name``; finite."""

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json`` with ``facts`` in it, and whatever :meth:`raw` needs."""


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
    def backend(self) -> Backend:
        """The PLDA."""
        return self.plda

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (D,) projected vector of a clip."""
        scaled = (self.front.raw(audio, name).astype(np.float64) - self.mean) / self.deviation
        projected: NDArray[np.float32] = self.plda.project(scaled[None])[0].astype(np.float32)
        return projected

    def save(self, folder: Path) -> None:
        """Write front end and ``plda.npz``."""
        facts = {"attacker": self.name, "speakers": list(self.speakers), "training": self.training}
        self.front.save(Path(folder), facts)
        scale = dict(zip(_SCALE, (self.mean, self.deviation), strict=True))
        write_arrays(Path(folder) / _PLDA, {**self.plda.to_arrays(), **scale})


def fit_embedding_attacker(
    front: FrontEnd, speech: Speech, *, training: str, dimensions: int
) -> EmbeddingAttacker:
    """Fit the back end to the speech of public speakers.

    Args:
        front: Makes the vectors.
        speech: At least 2 speakers with 2 utterances each.
        training: State of that speech, ``original`` or ``anonymized``.
        dimensions: Dimensions that LDA keeps at most.
    """
    labels = [utterance.speaker for utterance in speech]
    progress = Progress(f"{front.kind} vectors", len(labels), "utterance")
    rows = []
    for done, (name, audio) in enumerate(training_clips(speech), 1):
        rows.append(front.raw(audio, name).astype(np.float64))
        progress.update(done)
    vectors = np.stack(rows)
    mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    plda = fit_plda((vectors - mean) / deviation, labels, dimensions)
    return EmbeddingAttacker(front, speech.speakers, training, mean, deviation, plda)


def load_embedding_attacker(
    folder: Path, content: dict[str, Any], front: Callable[[Path], FrontEnd]
) -> EmbeddingAttacker:
    """Read an attacker; ``content`` is its model.json and ``front`` reads its front end."""
    path = Path(folder) / _PLDA
    names = [f"plda_{name}" for name in Plda.__dataclass_fields__]
    arrays = read_arrays(path, [*names, *_SCALE])
    plda = Plda.from_arrays(arrays, str(path))
    mean, deviation = (arrays[name] for name in _SCALE)
    if mean.shape != plda.mean.shape or deviation.shape != plda.mean.shape:
        raise InputError(f"{path}: the arrays of its PLDA do not fit together")
    return EmbeddingAttacker(
        front(Path(folder)), content["speakers"], content["training"], mean, deviation, plda
    )
