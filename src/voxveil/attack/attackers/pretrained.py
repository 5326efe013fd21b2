"""Attackers on a pretrained speaker network: as it is, with LDA and PLDA, or trained further.

The network is an imported model of kind ``speaker`` (:mod:`voxveil.pretrained`). Each attacker keeps a copy
of it, so a trained attacker does not depend on a file elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.attack.attackers.ecapa import centred, read_centre, write_centre
from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup, attacker_facts, training_clips
from voxveil.attack.backends import Cosine
from voxveil.attack.imported import ImportedNetwork
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.config.fields import speeds_of
from voxveil.corpus.split import Speech
from voxveil.features.speaker.crops import CropPlan, Crops
from voxveil.features.speaker.train import (
    CHECKPOINT_SECONDS,
    MarginModel,
    TrainedEncoder,
    fit_margin_model,
)
from voxveil.pretrained.kinds import SpeakerModel
from voxveil.pretrained.speaker import TorchSpeaker
from voxveil.runtime.atomic import write_bytes, write_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.training.checkpoint import load_weights, model_bytes
from voxveil.training.loop import Plan, device, seeded

__all__ = ["FineTunedAttacker", "PretrainedAttacker", "PretrainedFrontEnd"]

_PARAMETER = "train_attacker.pretrained"
_NETWORK = "network.safetensors"


class PretrainedFrontEnd:
    """Front end of the attacker ``pretrained_lda``: embeddings of a pretrained network."""

    kind = "pretrained_lda"

    def __init__(self, network: ImportedNetwork) -> None:
        self._network = network
        self.pretrained = network.model.facts()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, TrainedEncoder | None]:
        """Load the network; only the back end is trained."""
        return cls(ImportedNetwork.named(setup.params.pretrained, "speaker", _PARAMETER)), None

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the copy of the network."""
        return cls(ImportedNetwork.read(folder, "speaker"))

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (E,) unit-norm embedding of a clip."""
        speaker: SpeakerModel = self._network.loaded
        return speaker.embed(audio, name)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json`` and a copy of the network."""
        self._network.copy(folder)
        write_json(folder / "model.json", {**facts, **self._network.facts()})


@dataclass(frozen=True)
class PretrainedAttacker:
    """A pretrained network without any training, compared by cosine.

    Attributes:
        network: The network.
        speakers: Ids of the public speakers of the split, sorted; nothing is learned from them.
        training: State of their speech, ``original`` or ``anonymized``.
    """

    network: ImportedNetwork
    speakers: Sequence[str]
    training: str

    name = "pretrained"
    backend = Cosine()

    @property
    def pretrained(self) -> Mapping[str, str]:
        """Facts of the imported network, for results."""
        return self.network.model.facts()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Load the network."""
        network = ImportedNetwork.named(setup.params.pretrained, "speaker", _PARAMETER)
        return TrainedAttacker(cls(network, speech.speakers, setup.training))

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the attacker; ``content`` is its checked ``model.json``."""
        return cls(ImportedNetwork.read(folder, "speaker"), content["speakers"], content["training"])

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of a clip."""
        speaker: SpeakerModel = self.network.loaded
        return speaker.embed(audio, name)

    def save(self, folder: Path) -> None:
        """Write ``model.json`` and a copy of the network."""
        self.network.copy(Path(folder))
        write_json(Path(folder) / "model.json", {**attacker_facts(self), **self.network.facts()})


@dataclass(frozen=True)
class FineTunedAttacker:
    """A pretrained network that was trained further on the speech of public speakers, compared by cosine.

    The method of the VoicePrivacy Challenges 2024 and 2026: all weights move.

    Attributes:
        network: The pretrained network, with the weights after training.
        speakers: Ids of the public speakers it was trained on, sorted.
        training: State of their speech, ``original`` or ``anonymized``.
        centre: (E,) mean embedding of the training speech.
    """

    network: ImportedNetwork
    speakers: Sequence[str]
    training: str
    centre: NDArray[np.float64]

    name = "pretrained_finetuned"
    backend = Cosine()

    @property
    def pretrained(self) -> Mapping[str, str]:
        """Facts of the imported network, for results."""
        return self.network.model.facts()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Train all weights with the additive angular margin loss over speakers times speeds.

        Raises:
            ParamsError: The network is none that torch can train.
        """
        params = setup.params
        network = ImportedNetwork.named(params.pretrained, "speaker", _PARAMETER)
        speaker = network.loaded
        if not isinstance(speaker, TorchSpeaker):
            raise ParamsError(
                f"{_PARAMETER}: {network.model.folder}: a network of architecture"
                f" {network.model.architecture} cannot be trained; the kinds pretrained and pretrained_lda"
                " can use it"
            )

        def frames(audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
            with torch.inference_mode():
                features = speaker.features(torch.from_numpy(audio).to(device())[None])[0]
            result: NDArray[np.float32] = features.cpu().numpy()
            return result

        length = round(params.crop_seconds * SAMPLE_RATE / HOP)
        speeds = speeds_of(params.speeds, "train_attacker.speeds")
        plan = CropPlan(setup.seed, "train_attacker", params.batch, length, speeds, 0.0)
        crops = Crops(speech, plan, frames)
        with seeded(setup.seed, "train_attacker", "fine-tuning"):
            model = MarginModel(speaker.network, speaker.size, crops.classes).to(device())
        steps = Plan(
            "train_attacker fine-tuning",
            setup.seed,
            params.finetune_steps,
            params.finetune_learning_rate,
            checkpoint_seconds=CHECKPOINT_SECONDS,
        )
        curve = fit_margin_model(
            model,
            speaker.network,
            crops,
            steps,
            lambda step: 1.0,
            checkpoints=setup.checkpoints,
            sink=setup.sink,
        )
        vectors = [speaker.embed(audio, name).astype(np.float64) for name, audio in training_clips(speech)]
        attacker = cls(network, speech.speakers, setup.training, np.mean(vectors, axis=0))
        return TrainedAttacker(attacker, curve, curve[-1]["accuracy"])

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the attacker; ``content`` is its checked ``model.json``.

        Raises:
            InputError: A file is missing or does not fit.
        """
        network = ImportedNetwork.read(folder, "speaker")
        speaker = network.loaded
        if not isinstance(speaker, TorchSpeaker):
            raise InputError(f"{folder}: architecture {network.model.architecture} cannot have been trained")
        load_weights(speaker.network, folder / _NETWORK)
        centre = read_centre(folder, speaker.size)
        return cls(network, content["speakers"], content["training"], centre)

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) centred, unit-norm embedding of a clip."""
        return centred(self.network.loaded.embed(audio, name), self.centre)

    def save(self, folder: Path) -> None:
        """Write ``model.json``, the imported model, the trained weights and the centre."""
        folder, speaker = Path(folder), self.network.loaded
        if not isinstance(speaker, TorchSpeaker):
            raise TypeError(f"{self.name}: only a network in torch is trained")
        self.network.copy(folder)
        write_bytes(folder / _NETWORK, model_bytes(speaker.network))
        write_centre(folder, self.centre)
        write_json(folder / "model.json", {**attacker_facts(self), **self.network.facts()})
