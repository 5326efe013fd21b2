"""CAM++, a speaker network with context-aware masking, as published by 3D-Speaker.

Wang et al., "CAM++: A fast and efficient network for speaker verification using context-aware masking",
Interspeech 2023. Parameter names are those of the published checkpoints. Features are 80 Kaldi log
filterbanks (25 ms windows every 10 ms, no dither) with the mean of each band over the clip removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors, single_file
from voxveil.pretrained.speaker import TorchSpeaker, convert_weights, with_weights
from voxveil.runtime.errors import InputError

__all__ = ["CAMPlusPlus", "convert", "load"]

_BANDS = 80
_FIRST = 128
_GROWTH = 32
#: Layers, kernel and dilation of the three dense blocks.
_BLOCKS = ((12, 3, 1), (24, 3, 2), (16, 3, 2))
#: Frames (of 20 ms) of a segment of the context.
_SEGMENT = 100


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings."""
    del name
    path = single_file(files)
    tensors = read_tensors(path)
    weight = tensors.get("xvector.dense.linear.weight")
    if weight is None or weight.ndim != 3:
        raise InputError(f"{path}: not a CAM++ checkpoint (xvector.dense.linear.weight is absent)")
    size = int(weight.shape[0])
    convert_weights(CAMPlusPlus(size), tensors, str(path), folder)
    return {"embedding": size}


def load(model: PretrainedModel) -> TorchSpeaker:
    """Return the loaded network."""
    network = with_weights(CAMPlusPlus(int(model.settings["embedding"])), model)
    return TorchSpeaker(network, int(model.settings["embedding"]), kaldi_filterbanks, model)


def kaldi_filterbanks(audio: torch.Tensor) -> torch.Tensor:
    """Return (batch, frames, 80) mean-free log filterbanks of (batch, samples) audio at 16 kHz."""
    from torchaudio.compliance.kaldi import fbank

    rows = [fbank(clip[None], num_mel_bins=_BANDS, dither=0.0) for clip in audio]
    frames = torch.stack(rows)
    return frames - frames.mean(dim=1, keepdim=True)


def _normalized(channels: int, *, affine: bool = True, relu: bool = True) -> nn.Sequential:
    layers = nn.Sequential()
    layers.add_module("batchnorm", nn.BatchNorm1d(channels, affine=affine))
    if relu:
        layers.add_module("relu", nn.ReLU())
    return layers


class _Residual(nn.Module):
    """Two 3 x 3 convolutions with a shortcut; ``stride`` halves the frequency axis."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, stride=(stride, 1), padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1:
            convolution = nn.Conv2d(channels, channels, 1, stride=(stride, 1), bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(channels))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.bn1(self.conv1(frames)))
        return functional.relu(self.bn2(self.conv2(inner)) + self.shortcut(frames))


class _Head(nn.Module):
    """The two-dimensional front end: (batch, bands, frames) to (batch, 32 bands / 8, frames)."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.layer1 = nn.Sequential(_Residual(channels, 2), _Residual(channels, 1))
        self.layer2 = nn.Sequential(_Residual(channels, 2), _Residual(channels, 1))
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.bn1(self.conv1(frames[:, None])))
        inner = functional.relu(self.bn2(self.conv2(self.layer2(self.layer1(inner)))))
        return inner.flatten(1, 2)


class _Convolution(nn.Module):
    """A convolution over time with batch normalization and ReLU after it."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.nonlinear = _normalized(outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.nonlinear(self.linear(frames))
        return result


class _Masked(nn.Module):
    """A convolution whose output is masked by the context of segment and clip (equations 1 to 4)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        padding = (kernel - 1) // 2 * dilation
        self.linear_local = nn.Conv1d(inputs, outputs, kernel, padding=padding, dilation=dilation, bias=False)
        self.linear1 = nn.Conv1d(inputs, inputs // 2, 1)
        self.linear2 = nn.Conv1d(inputs // 2, outputs, 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        count = frames.shape[-1]
        segments = functional.avg_pool1d(frames, _SEGMENT, stride=_SEGMENT, ceil_mode=True)
        context = segments.repeat_interleave(_SEGMENT, dim=-1)[..., :count] + frames.mean(-1, keepdim=True)
        mask = torch.sigmoid(self.linear2(functional.relu(self.linear1(context))))
        result: torch.Tensor = self.linear_local(frames) * mask
        return result


class _DenseLayer(nn.Module):
    """A bottleneck and a masked convolution, whose output is appended to its input."""

    def __init__(self, inputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.nonlinear1 = _normalized(inputs)
        self.linear1 = nn.Conv1d(inputs, 4 * _GROWTH, 1, bias=False)
        self.nonlinear2 = _normalized(4 * _GROWTH)
        self.cam_layer = _Masked(4 * _GROWTH, _GROWTH, kernel, dilation)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        inner = self.cam_layer(self.nonlinear2(self.linear1(self.nonlinear1(frames))))
        return torch.cat([frames, inner], dim=1)


class _Halving(nn.Module):
    """Batch normalization, ReLU and a 1 x 1 convolution that halves the channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.nonlinear = _normalized(inputs)
        self.linear = nn.Conv1d(inputs, inputs // 2, 1, bias=False)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(self.nonlinear(frames))
        return result


class _Statistics(nn.Module):
    """Mean and standard deviation over time: (batch, channels, frames) to (batch, 2 channels)."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return torch.cat([frames.mean(-1), frames.std(-1)], dim=-1)


class _Projection(nn.Module):
    """The last layer, whose batch normalization has no parameters to learn."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(inputs, outputs, 1, bias=False)
        self.nonlinear = _normalized(outputs, affine=False, relu=False)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.nonlinear(self.linear(vectors[..., None])[..., 0])
        return result


class CAMPlusPlus(nn.Module):
    """(batch, frames, 80) filterbanks to (batch, ``embedding``) vectors, not normalized."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.head = _Head()
        self.xvector = nn.Sequential()
        self.xvector.add_module("tdnn", _Convolution(32 * _BANDS // 8, _FIRST, 5, 2))
        channels = _FIRST
        for number, (layers, kernel, dilation) in enumerate(_BLOCKS, 1):
            block = nn.Sequential()
            for index in range(layers):
                layer = _DenseLayer(channels + index * _GROWTH, kernel, dilation)
                block.add_module(f"tdnnd{index + 1}", layer)
            channels += layers * _GROWTH
            self.xvector.add_module(f"block{number}", block)
            self.xvector.add_module(f"transit{number}", _Halving(channels))
            channels //= 2
        self.xvector.add_module("out_nonlinear", _normalized(channels))
        self.xvector.add_module("stats", _Statistics())
        self.xvector.add_module("dense", _Projection(2 * channels, embedding))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Embed (batch, frames, 80) features."""
        result: torch.Tensor = self.xvector(self.head(features.transpose(1, 2)))
        return result
