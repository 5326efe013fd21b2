"""Pretrained speaker networks in torch: embedding of clips, and filling of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.pretrained.folder import PretrainedModel
from voxveil.runtime.errors import InputError, one_line
from voxveil.training.loop import device

__all__ = ["MINIMUM_SAMPLES", "TorchSpeaker", "checked_clip", "fill", "require_rate", "unit"]

_RATE = 16000
#: The shortest clip that is embedded (0.5 s at 16 kHz); a shorter one is repeated up to it.
MINIMUM_SAMPLES = _RATE // 2


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
        clip = torch.from_numpy(checked_clip(audio, name)).to(device())
        with torch.inference_mode():
            vector = self.network(self.features(clip[None]))[0].double()
        return unit(vector.cpu().numpy(), name)


def checked_clip(audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Return a clip as float32, repeated up to :data:`MINIMUM_SAMPLES`.

    Raises:
        InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
    """
    if audio.ndim != 1 or not len(audio):
        raise InputError(
            f"{name}: audio has shape {audio.shape}, must be (samples,) with at least one sample"
        )
    if not np.isfinite(audio).all():
        raise InputError(f"{name}: audio holds NaN or infinity")
    clip = np.ascontiguousarray(audio, np.float32)
    if len(clip) < MINIMUM_SAMPLES:
        clip = np.tile(clip, -(-MINIMUM_SAMPLES // len(clip)))[:MINIMUM_SAMPLES]
    return clip


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
    if model.sample_rate != _RATE:
        raise InputError(f"{model.folder}: takes audio at {model.sample_rate} Hz, must be {_RATE} Hz")


def fill(network: nn.Module, tensors: Mapping[str, torch.Tensor], where: str) -> None:
    """Fill a network with weights.

    Raises:
        InputError: They are of another architecture or size.
    """
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise InputError(f"{where}: weights of another architecture ({one_line(error)[:200]})") from None
