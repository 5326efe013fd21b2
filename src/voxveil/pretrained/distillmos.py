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

from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors, single_file
from voxveil.pretrained.speaker import convert_weights, require_rate, with_weights
from voxveil.runtime.errors import MissingExtraError

__all__ = ["DistillMos", "convert", "load"]


class DistillMos:
    """The judge; scores run from 1 to 5."""

    def __init__(self, network: Any, model: PretrainedModel) -> None:
        require_rate(model)
        self._network = network.eval()
        self.model = model

    def score(self, audio: NDArray[np.float32], name: str) -> float:
        """Return the predicted MOS of (n,) samples at 16 kHz."""
        clip = torch.from_numpy(at_least_minimum(audio, name))
        with torch.inference_mode():
            return float(self._network(clip[None])[0])


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings."""
    del name
    path = single_file(files)
    tensors = read_tensors(path)
    convert_weights(_network(), tensors, str(path), folder)
    return {}


def load(model: PretrainedModel) -> DistillMos:
    """Return the loaded judge."""
    return DistillMos(with_weights(_network(), model), model)


def _network() -> Any:
    try:
        from distillmos import ConvTransformerSQAModel
    except ImportError:
        raise MissingExtraError("distillmos", "judges") from None
    return ConvTransformerSQAModel(load_weights=False)
