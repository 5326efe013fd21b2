"""WavLM features with an ECAPA-TDNN on top, cosine scores: the attacker of VoicePrivacy 2026.

WavLM stays frozen; the ECAPA-TDNN is trained on its features by the library's one trainer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.ecapa import centred, load_centred, save_centre
from voxveil.attack.backends import Backend, Cosine
from voxveil.attack.clips import listed_speeds, training_clips
from voxveil.attack.wavlm import STRIDE_SECONDS, WavLM, find_wavlm
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.features.speaker.encoder import SpeakerEncoder
from voxveil.features.speaker.train import Features, TrainedEncoder, train_encoder
from voxveil.training.loop import CurveSink

__all__ = ["WavLMEcapaAttacker"]


@dataclass(frozen=True)
class WavLMEcapaAttacker:
    """A trained ECAPA-TDNN on frozen features.

    Attributes:
        wavlm: Makes the features.
        encoder: The network on top.
        speakers: Ids of the public speakers it was trained on, sorted.
        training: State of their speech, ``original`` or ``anonymized``.
        centre: (E,) mean embedding of the training speech.
    """

    wavlm: WavLM
    encoder: SpeakerEncoder
    speakers: Sequence[str]
    training: str
    centre: NDArray[np.float64]

    name = "wavlm_ecapa"

    @property
    def backend(self) -> Backend:
        """Cosine."""
        return Cosine()

    @classmethod
    def train(
        cls,
        speech: Speech,
        params: TrainAttackerParams,
        *,
        training: str,
        seed: int,
        checkpoints: Path | None = None,
        sink: CurveSink | None = None,
    ) -> tuple[WavLMEcapaAttacker, TrainedEncoder]:
        """Train on public speech; see :meth:`voxveil.attack.attackers.ecapa.EcapaAttacker.train`."""
        wavlm = WavLM(find_wavlm(params.wavlm))
        result = train_encoder(
            speech,
            params,
            name="train_attacker",
            seed=seed,
            checkpoints=checkpoints,
            sink=sink,
            speeds=listed_speeds(params.speeds),
            noise=params.noise,
            features=Features(wavlm.frames, wavlm.size, STRIDE_SECONDS),
        )
        vectors = [
            result.encoder.embed_frames(wavlm.frames(audio, name)).astype(np.float64)
            for name, audio in training_clips(speech)
        ]
        return cls(wavlm, result.encoder, speech.speakers, training, np.mean(vectors, axis=0)), result

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) centred, unit-norm embedding of a 16 kHz clip."""
        return centred(self.encoder.embed_frames(self.wavlm.frames(audio, name)), self.centre)

    def save(self, folder: Path) -> None:
        """Write the ECAPA-TDNN and its centre; ``model.json`` names the folder of WavLM."""
        facts = {"attacker": self.name, "speakers": list(self.speakers), "training": self.training}
        self.encoder.save(folder, {**facts, "wavlm": str(self.wavlm.folder)})
        save_centre(folder, self.centre)

    @classmethod
    def load(cls, folder: Path) -> WavLMEcapaAttacker:
        """Read a trained attacker; see :func:`voxveil.attack.attackers.ecapa.load_centred`."""
        content, encoder, centre = load_centred(folder, cls.name)
        wavlm = WavLM(find_wavlm(content["wavlm"]))
        return cls(wavlm, encoder, content["speakers"], content["training"], centre)
