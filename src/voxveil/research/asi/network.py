"""An x-vector network on feature sequences (Snyder et al., "X-vectors", ICASSP 2018), small.

Frame layers, mean and standard deviation over the utterance of their output and of the features
themselves, a segment layer, and a softmax over speakers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

__all__ = ["AsiNetwork", "padded"]

#: Taps and dilation of the frame layers: 19 frames in all.
_FRAME_LAYERS = ((1, 1), (5, 1), (3, 2), (3, 3), (1, 1))
#: Below it a variance over frames counts as rounding.
_SMALLEST_VARIANCE = 1e-4
_DROPOUT = 0.2


class AsiNetwork(nn.Module):
    """Log-posteriors of speakers.

    Args:
        mean: (D,) of the features over training frames.
        sd: (D,) their standard deviation, above 0.
        channels: Width of all layers.
        speakers: S.
    """

    mean: torch.Tensor
    sd: torch.Tensor

    def __init__(self, mean: torch.Tensor, sd: torch.Tensor, channels: int, speakers: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("sd", sd)
        inputs = [len(mean), *[channels] * (len(_FRAME_LAYERS) - 1)]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, channels, taps, dilation=dilation, padding=taps // 2 * dilation)
            for width, (taps, dilation) in zip(inputs, _FRAME_LAYERS, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in _FRAME_LAYERS)
        self.segment = nn.Sequential(
            nn.Linear(2 * (channels + len(mean)), channels),
            nn.ReLU(),
            nn.BatchNorm1d(channels),
            nn.Dropout(_DROPOUT),
        )
        self.output = nn.Linear(channels, speakers)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return (batch, S) log-posteriors.

        Args:
            features: (batch, K, D).
            mask: (batch, K) 1 for frames of the utterance, 0 for padding, which changes nothing.
        """
        keep = mask.unsqueeze(1)
        inputs = ((features - self.mean) / self.sd).transpose(1, 2) * keep
        hidden = inputs
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            hidden = norm(functional.relu(convolution(hidden))) * keep
        pooled = statistics(torch.cat([inputs, hidden], dim=1), keep)
        return functional.log_softmax(self.output(self.segment(pooled)), dim=1)


def statistics(frames: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Return (batch, 2 C): mean and standard deviation over the kept frames.

    Args:
        frames: (batch, C, K), 0 where not kept.
        keep: (batch, 1, K).
    """
    count = keep.sum(dim=2)
    mean = frames.sum(dim=2) / count
    variance = ((frames - mean.unsqueeze(2)) * keep).square().sum(dim=2) / count
    return torch.cat([mean, torch.sqrt(variance + _SMALLEST_VARIANCE)], dim=1)


def padded(rows: Sequence[NDArray[np.float32]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (batch, longest K, D) and its mask (batch, longest K)."""
    features = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    mask = (torch.arange(features.shape[1])[None, :] < lengths[:, None]).float()
    return features, mask
