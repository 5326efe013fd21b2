"""DistillMOS: predicted quality of speech by a small network distilled from a large one.

Stahl and Gamper, "Distillation and pruning for scalable self-supervised representation-based speech
quality assessment", ICASSP 2025. The network's code is that of the package ``distillmos``; the weights are
read from the model folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save

from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors
from voxveil.pretrained.speaker import checked_clip, fill, require_rate
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import MissingExtraError

__all__ = ["DistillMos", "convert", "load"]

_WEIGHTS = "model.safetensors"


class DistillMos:
    """The judge; scores run from 1 to 5."""

    def __init__(self, network: Any, model: PretrainedModel) -> None:
        require_rate(model)
        self._network = network.eval()
        self.model = model

    def score(self, audio: NDArray[np.float32], name: str) -> float:
        """Return the predicted MOS of (n,) samples at 16 kHz."""
        clip = torch.from_numpy(checked_clip(audio, name))
        with torch.inference_mode():
            return float(self._network(clip[None])[0])


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings."""
    del name
    (path,) = files.values()
    tensors = read_tensors(path)
    fill(_network(), tensors, str(path))
    write_bytes(folder / _WEIGHTS, save({key: value.contiguous() for key, value in tensors.items()}))
    return {}


def load(model: PretrainedModel) -> DistillMos:
    """Return the loaded judge."""
    network = _network()
    path = model.folder / _WEIGHTS
    fill(network, read_tensors(path), str(path))
    return DistillMos(network, model)


def _network() -> Any:
    try:
        from distillmos import ConvTransformerSQAModel
    except ImportError:
        raise MissingExtraError("distillmos", "judges") from None
    return ConvTransformerSQAModel(load_weights=False)
