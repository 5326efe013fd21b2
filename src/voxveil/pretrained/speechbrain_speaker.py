"""The published speaker networks of SpeechBrain: ECAPA-TDNN and x-vector, trained on VoxCeleb.

The sizes are read from the weights; ``hyperparams.yaml`` is never read, because it can create any
Python object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors
from voxveil.pretrained.speaker import TorchSpeaker, convert_weights, with_weights
from voxveil.runtime.errors import InputError
from voxveil.training.placeholders import remove_placeholders

__all__ = ["convert", "load"]

_FIRST = {"speechbrain_ecapa": "blocks.0.conv.conv.weight", "speechbrain_xvector": "blocks.0.conv.weight"}


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings."""
    path = files.get("embedding_model.ckpt") or files["model.safetensors"]
    tensors = read_tensors(path)
    first = tensors.get(_FIRST[name])
    if first is None:
        raise InputError(f"{path}: not weights of {name} ({_FIRST[name]} is absent)")
    if name == "speechbrain_ecapa":
        if "fc.conv.weight" not in tensors:
            raise InputError(f"{path}: not weights of {name} (fc.conv.weight is absent)")
        size = int(tensors["fc.conv.weight"].shape[0])
    else:
        linear = [key for key in tensors if key.endswith("w.weight")]
        if not linear:
            raise InputError(f"{path}: not weights of {name} (no linear layer)")
        size = int(tensors[linear[-1]].shape[0])
    settings = {"bands": int(first.shape[1]), "channels": int(first.shape[0]), "embedding": size}
    convert_weights(_network(name, settings), tensors, str(path), folder)
    return settings


def load(model: PretrainedModel) -> TorchSpeaker:
    """Return the loaded network."""
    network = with_weights(_network(model.architecture, model.settings), model)
    features = _filterbanks(int(model.settings["bands"]))
    return TorchSpeaker(_Squeezed(network), int(model.settings["embedding"]), features, model)


class _Squeezed(nn.Module):
    """A network of SpeechBrain without the time axis of length 1 in its output."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.network(features).squeeze(1)
        return result


def _network(name: str, settings: Mapping[str, Any]) -> nn.Module:
    bands, channels, size = (int(settings[key]) for key in ("bands", "channels", "embedding"))
    if name == "speechbrain_ecapa":
        from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

        remove_placeholders()
        network: nn.Module = ECAPA_TDNN(bands, lin_neurons=size, channels=[channels] * 4 + [3 * channels])
        return network
    from speechbrain.lobes.models.Xvector import Xvector
    from speechbrain.nnet.pooling import StatisticsPooling

    remove_placeholders()
    vectors: nn.Module = Xvector(
        in_channels=bands, tdnn_channels=[channels] * 4 + [1500], lin_neurons=size, activation=nn.LeakyReLU
    )
    for layer in vectors.modules():
        if isinstance(layer, StatisticsPooling):
            # SpeechBrain adds fresh noise to the mean also in evaluation, so no score could be repeated.
            layer._get_gauss_noise = _no_noise
    return vectors


def _no_noise(shape: Any, device: Any = "cpu") -> torch.Tensor:
    return torch.zeros(shape, device=device)


def _filterbanks(bands: int) -> Any:
    from speechbrain.lobes.features import Fbank

    remove_placeholders()
    return partial(_mean_free, Fbank(n_mels=bands))


def _mean_free(bank: Any, audio: torch.Tensor) -> torch.Tensor:
    """Return SpeechBrain's log filterbanks with the mean of each band over the clip removed."""
    frames: torch.Tensor = bank.to(audio.device)(audio)
    return frames - frames.mean(dim=1, keepdim=True)
