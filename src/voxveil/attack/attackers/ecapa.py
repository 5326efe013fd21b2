"""The ECAPA-TDNN attacker with cosine scores.

Embeddings are centred on the mean of its training speech before they are compared: what all speech
of one system shares says nothing about who speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.backends import Backend, Cosine
from voxveil.attack.clips import listed_speeds, training_clips
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.features.speaker.encoder import SpeakerEncoder
from voxveil.features.speaker.train import TrainedEncoder, train_encoder
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.training.loop import CurveSink

__all__ = ["EcapaAttacker", "centred", "load_centred", "save_centre"]

_CENTRE = "centre.npz"


@dataclass(frozen=True)
class EcapaAttacker:
    """A trained ECAPA-TDNN.

    Attributes:
        encoder: The network.
        speakers: Ids of the public speakers it was trained on, sorted.
        training: State of the speech it was trained on, ``original`` or ``anonymized``.
        centre: (E,) mean embedding of the training speech.
    """

    encoder: SpeakerEncoder
    speakers: Sequence[str]
    training: str
    centre: NDArray[np.float64]

    name = "ecapa"

    @property
    def backend(self) -> Backend:
        """Cosine."""
        return Cosine()

    @classmethod
    def train(
        cls,
        split: Speech,
        params: TrainAttackerParams,
        *,
        training: str,
        seed: int,
        checkpoints: Path | None = None,
        sink: CurveSink | None = None,
    ) -> tuple[EcapaAttacker, TrainedEncoder]:
        """Train on a public split; returns the attacker and how its training went.

        Args:
            split: Speech of public speakers.
            params: Sizes and steps.
            training: State of that speech, ``original`` or ``anonymized``.
            seed: The run's seed.
            checkpoints: Where to resume from and save to.
            sink: Told each point of the curve.
        """
        result = train_encoder(
            split,
            params,
            name="train_attacker",
            seed=seed,
            checkpoints=checkpoints,
            sink=sink,
            speeds=listed_speeds(params.speeds),
            noise=params.noise,
        )
        vectors = result.encoder.embed_many(training_clips(split))
        centre = np.mean([v.astype(np.float64) for v in vectors], axis=0)
        return cls(result.encoder, split.speakers, training, centre), result

    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""
        facts = {"attacker": self.name, "speakers": list(self.speakers), "training": self.training}
        self.encoder.save(folder, facts)
        save_centre(folder, self.centre)

    @classmethod
    def load(cls, folder: Path) -> EcapaAttacker:
        """Read a trained attacker.

        Raises:
            InputError: The folder holds none, or not this attacker.
        """
        content, encoder, centre = load_centred(folder, cls.name)
        return cls(encoder, content["speakers"], content["training"], centre)

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) centred, unit-norm embedding of a 16 kHz clip."""
        return centred(self.encoder.embed(audio, name), self.centre)


def centred(vector: NDArray[np.float32], centre: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return ``vector`` minus ``centre``, scaled to norm 1."""
    moved = vector - centre
    unit: NDArray[np.float32] = (moved / max(float(np.linalg.norm(moved)), 1e-12)).astype(np.float32)
    return unit


def save_centre(folder: Path, centre: NDArray[np.float64]) -> None:
    """Write the centre beside a saved encoder."""
    write_arrays(Path(folder) / _CENTRE, {"centre": centre})


def load_centred(folder: Path, name: str) -> tuple[dict[str, Any], SpeakerEncoder, NDArray[np.float64]]:
    """Read ``model.json``, encoder and centre of the attacker ``name``.

    Raises:
        InputError: The folder holds none, or not this attacker.
    """
    path = Path(folder) / "model.json"
    content = read_json(path)
    if not isinstance(content, dict) or content.get("attacker") != name:
        raise InputError(f"{path}: not an {name} attacker")
    encoder = SpeakerEncoder.load(folder)
    centre = read_arrays(Path(folder) / _CENTRE, ["centre"])["centre"]
    if centre.shape != (encoder.size.embedding,):
        raise InputError(f"{Path(folder) / _CENTRE}: the centre does not fit the embedding")
    return content, encoder, centre
