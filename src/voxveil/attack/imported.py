"""Imported networks (:mod:`voxveil.pretrained`) behind attackers, and attacks on self-supervised features.

An attacker keeps a copy of its network, so that it does not depend on a file elsewhere.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.corpus.split import Speech
from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import PretrainedModel, read_model
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["ImportedNetwork", "WavLMStatistics", "named_features"]

#: Copy of the imported model in an attacker's folder.
_COPY = "pretrained"


@dataclass(frozen=True)
class ImportedNetwork:
    """A loaded network and the model folder that it was read from.

    Attributes:
        model: The folder.
        loaded: The network, with the interface of its kind (:mod:`voxveil.pretrained.kinds`).
    """

    model: PretrainedModel
    loaded: Any

    @classmethod
    def named(cls, text: str, kind: str, parameter: str) -> Self:
        """Load the network whose folder a parameter names.

        Raises:
            ParamsError: The parameter is empty.
            InputError: There is no such model, or it is of another kind.
        """
        if not text:
            raise ParamsError(
                f"{parameter}: is empty; must be the folder of an imported model of kind {kind}"
                " ('voxveil model import')"
            )
        model = read_model(Path(text), kind, parameter)
        return cls(model, load(model))

    @classmethod
    def read(cls, folder: Path, kind: str) -> Self:
        """Load the copy of the network in an attacker's folder.

        Raises:
            InputError: There is none, or a file of it is missing or changed.
        """
        if not (folder / _COPY).is_dir():
            raise InputError(f"{folder}: holds no copy of its imported network; train the attacker again")
        model = read_model(folder / _COPY, kind)
        return cls(model, load(model))

    def copy(self, folder: Path) -> None:
        """Copy the model folder into an attacker's folder."""
        shutil.copytree(self.model.folder, folder / _COPY)

    def facts(self) -> dict[str, Any]:
        """Return what ``model.json`` of an attacker states of its network."""
        return {"pretrained": self.model.facts()}


def named_features(setup: TrainingSetup) -> ImportedNetwork:
    """Load the self-supervised network that ``train_attacker.wavlm`` names."""
    return ImportedNetwork.named(setup.params.wavlm, "features", "train_attacker.wavlm")


class WavLMStatistics:
    """The front end: mean and deviation over time of self-supervised features."""

    kind = "wavlm"

    def __init__(self, network: ImportedNetwork) -> None:
        self._network = network
        self.pretrained = network.model.facts()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, None]:
        """Return the front end with the network that the parameters name; it stays as it is."""
        return cls(named_features(setup)), None

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the copy of the network."""
        return cls(ImportedNetwork.read(folder, "features"))

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (2 size,) mean and standard deviation over time."""
        frames = self._network.loaded.frames(audio, name).astype(np.float64)
        return np.concatenate([frames.mean(axis=0), frames.std(axis=0)])

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json`` and a copy of the network."""
        self._network.copy(folder)
        write_json(Path(folder) / "model.json", {"format": 1, **facts, **self._network.facts()})
