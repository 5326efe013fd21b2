"""The x-vector front end of the PLDA attacker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.clips import listed_speeds
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.features.speaker.encoder import X_VECTOR, SpeakerEncoder
from voxveil.features.speaker.train import TrainedEncoder, train_encoder
from voxveil.training.loop import CurveSink

__all__ = ["XVector", "train_xvector"]


class XVector:
    """A trained x-vector network."""

    kind = "xvector_plda"

    def __init__(self, encoder: SpeakerEncoder) -> None:
        self._encoder = encoder

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (E,) unit-norm x-vector of a clip."""
        return self._encoder.embed(audio, name)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write the network."""
        self._encoder.save(folder, facts)

    @classmethod
    def load(cls, folder: Path) -> XVector:
        """Read the network."""
        return cls(SpeakerEncoder.load(folder))


def train_xvector(
    speech: Speech,
    params: TrainAttackerParams,
    *,
    seed: int,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> tuple[XVector, TrainedEncoder]:
    """Train the network on public speech; see :func:`voxveil.features.speaker.train.train_encoder`."""
    result = train_encoder(
        speech,
        params,
        name="train_attacker",
        seed=seed,
        checkpoints=checkpoints,
        sink=sink,
        architecture=X_VECTOR,
        speeds=listed_speeds(params.speeds),
        noise=params.noise,
    )
    return XVector(result.encoder), result
