"""Pretrained speaker networks in torch: embedding of clips, and filling of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError, one_line
from voxveil.training.checkpoint import load_weights, model_bytes
from voxveil.training.loop import device

__all__ = ["TorchSpeaker", "convert_weights", "require_rate", "unit", "with_weights"]

#: Weights of an imported network.
WEIGHTS = "model.safetensors"


class TorchSpeaker:
    """A speaker network with its features.

    Each clip is embedded by itself in evaluation mode, so its embedding does not depend on other clips.

    Attributes:
        network: (batch, frames, bands) features to (batch, E).
        size: Values E of an embedding.
        features: (batch, samples) audio at 16 kHz to (batch, frames, bands).
        model: Where the weights came from.
    """

    def __init__(
        self,
        network: nn.Module,
        size: int,
        features: Callable[[torch.Tensor], torch.Tensor],
        model: PretrainedModel,
    ) -> None:
        require_rate(model)
        self.network = network.to(device()).eval()
        self.size = size
        self.features = features
        self.model = model

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of a clip of (n,) samples at 16 kHz.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
        """
        clip = torch.from_numpy(at_least_minimum(audio, name)).to(device())
        with torch.inference_mode():
            vector = self.network(self.features(clip[None]))[0].double()
        return unit(vector.cpu().numpy(), name)


def unit(vector: NDArray[np.float64], name: str) -> NDArray[np.float32]:
    """Return a vector scaled to Euclidean norm 1.

    Raises:
        InputError: It holds NaN or infinity, or is zero.
    """
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or norm == 0:
        raise InputError(f"{name}: the speaker network returned an embedding of norm {norm:g}")
    result: NDArray[np.float32] = (vector / norm).astype(np.float32)
    return result


def require_rate(model: PretrainedModel) -> None:
    """Refuse a model that takes audio at another rate than 16 kHz.

    Raises:
        InputError: It does.
    """
    if model.sample_rate != SAMPLE_RATE:
        raise InputError(f"{model.folder}: takes audio at {model.sample_rate} Hz, must be {SAMPLE_RATE} Hz")


def convert_weights(
    network: nn.Module, tensors: Mapping[str, torch.Tensor], where: str, folder: Path
) -> None:
    """Write weights of the original as ``model.safetensors``, after the network has taken them.

    Args:
        network: Network of the sizes that the weights have.
        tensors: The weights by name.
        where: Their file, for errors.
        folder: The folder of the imported model.

    Raises:
        InputError: They are of another architecture or size.
    """
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise InputError(f"{where}: weights of another architecture ({one_line(error)[:200]})") from None
    write_bytes(folder / WEIGHTS, model_bytes(network))


def with_weights(network: nn.Module, model: PretrainedModel) -> nn.Module:
    """Return the network with the weights of an imported model.

    Raises:
        InputError: They are missing or of another size.
    """
    load_weights(network, model.folder / WEIGHTS)
    return network
