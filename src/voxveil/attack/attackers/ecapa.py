"""ECAPA-TDNN attackers with cosine scores, on log-mel or on WavLM features.

On WavLM features it is the attacker of VoicePrivacy 2026: WavLM stays frozen and the ECAPA-TDNN is trained
on its features. Embeddings are centred on the mean of the training speech before they are compared: what
all speech of one system shares says nothing about who speaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup, attacker_facts, training_clips
from voxveil.attack.backends import Cosine
from voxveil.attack.imported import ImportedNetwork, named_features
from voxveil.config.fields import speeds_of
from voxveil.corpus.split import Speech
from voxveil.features.speaker.encoder import ECAPA, SpeakerEncoder
from voxveil.features.speaker.train import Features, TrainedEncoder, train_encoder
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError

__all__ = ["EcapaAttacker", "centred", "read_centre", "train_network", "write_centre"]

_CENTRE = "centre.npz"


@dataclass(frozen=True)
class EcapaAttacker:
    """A trained ECAPA-TDNN.

    Attributes:
        encoder: The network.
        speakers: Ids of the public speakers it was trained on, sorted.
        training: State of the speech it was trained on, ``original`` or ``anonymized``.
        centre: (E,) mean embedding of the training speech.
        wavlm: Network whose features the ECAPA-TDNN reads; it reads log-mel where None.
    """

    encoder: SpeakerEncoder
    speakers: Sequence[str]
    training: str
    centre: NDArray[np.float64]
    wavlm: ImportedNetwork | None = None

    backend = Cosine()

    @property
    def name(self) -> str:
        """``ecapa`` or ``wavlm_ecapa``."""
        return "ecapa" if self.wavlm is None else "wavlm_ecapa"

    @property
    def pretrained(self) -> Mapping[str, str]:
        """Facts of the imported network, for results."""
        return {} if self.wavlm is None else self.wavlm.model.facts()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Train on log-mel of public speech."""
        return cls._train(speech, setup, None, Features(mel=True))

    @classmethod
    def train_on_wavlm(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Train on WavLM features of public speech."""
        wavlm = named_features(setup)
        network = wavlm.loaded
        return cls._train(
            speech, setup, wavlm, Features(network.frames, network.size, network.stride_seconds)
        )

    @classmethod
    def _train(
        cls, speech: Speech, setup: TrainingSetup, wavlm: ImportedNetwork | None, features: Features
    ) -> TrainedAttacker:
        result = train_network(speech, setup, features=features)
        vectors = [
            _embedded(result.encoder, wavlm, audio, name).astype(np.float64)
            for name, audio in training_clips(speech)
        ]
        attacker = cls(result.encoder, speech.speakers, setup.training, np.mean(vectors, axis=0), wavlm)
        return TrainedAttacker(attacker, result.curve, result.accuracy)

    def save(self, folder: Path) -> None:
        """Write network and centre, and a copy of WavLM."""
        facts = attacker_facts(self)
        if self.wavlm is not None:
            self.wavlm.copy(Path(folder))
            facts |= self.wavlm.facts()
        self.encoder.save(folder, facts)
        write_centre(folder, self.centre)

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> EcapaAttacker:
        """Read a trained attacker; ``content`` is its checked ``model.json``."""
        encoder = SpeakerEncoder.load(folder)
        centre = read_centre(folder, encoder.size.embedding)
        wavlm = ImportedNetwork.read(folder, "features") if content["attacker"] == "wavlm_ecapa" else None
        return cls(encoder, content["speakers"], content["training"], centre, wavlm)

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) centred, unit-norm embedding of a 16 kHz clip."""
        return centred(_embedded(self.encoder, self.wavlm, audio, name), self.centre)


def centred(vector: NDArray[np.float32], centre: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return an (E,) embedding minus the (E,) ``centre``, scaled to norm 1."""
    moved = vector - centre
    unit: NDArray[np.float32] = (moved / max(float(np.linalg.norm(moved)), 1e-12)).astype(np.float32)
    return unit


def write_centre(folder: Path, centre: NDArray[np.float64]) -> None:
    """Write the mean embedding of the training speech into an attacker's folder."""
    write_arrays(Path(folder) / _CENTRE, {"centre": centre})


def read_centre(folder: Path, embedding: int) -> NDArray[np.float64]:
    """Read what :func:`write_centre` wrote.

    Raises:
        InputError: The file is missing, or not of shape (``embedding``,).
    """
    path = Path(folder) / _CENTRE
    centre = read_arrays(path, ["centre"])["centre"]
    if centre.shape != (embedding,):
        raise InputError(f"{path}: centre has shape {centre.shape}, must be ({embedding},)")
    return centre


def _embedded(
    encoder: SpeakerEncoder, wavlm: ImportedNetwork | None, audio: NDArray[np.float32], name: str
) -> NDArray[np.float32]:
    """Return the (E,) embedding of a clip before it is centred."""
    if wavlm is None:
        return encoder.embed(audio, name)
    return encoder.embed_frames(wavlm.loaded.frames(audio, name))


def train_network(
    speech: Speech, setup: TrainingSetup, *, architecture: str = ECAPA, features: Features
) -> TrainedEncoder:
    """Train a speaker encoder with the parameters of the section ``train_attacker``."""
    params = setup.params
    return train_encoder(
        speech,
        params,
        name="train_attacker",
        seed=setup.seed,
        checkpoints=setup.checkpoints,
        sink=setup.sink,
        architecture=architecture,
        speeds=speeds_of(params.speeds, "train_attacker.speeds"),
        noise=params.noise,
        features=features,
    )
