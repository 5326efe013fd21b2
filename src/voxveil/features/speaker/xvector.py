"""The x-vector network: time-delay layers, statistics over time, one linear layer.

Snyder et al., "X-vectors: robust DNN embeddings for speaker recognition", ICASSP 2018. Written out
here because the statistics pooling of SpeechBrain's adds random noise, in evaluation too: the same
clip would get another embedding each time.
"""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["XVectorNetwork"]

#: Taps and dilation of each frame layer: 15 frames of context.
_LAYERS = ((5, 1), (3, 2), (3, 3), (1, 1), (1, 1))
_VARIANCE_FLOOR = 1e-5


class XVectorNetwork(nn.Module):
    """Frames of equal-length clips to embeddings.

    Args:
        inputs: Values per frame.
        channels: Width of the frame layers; the last is three times as wide.
        embedding: Size E of the embedding.
    """

    def __init__(self, inputs: int, channels: int, embedding: int) -> None:
        super().__init__()
        widths = [inputs, *[channels] * (len(_LAYERS) - 1), 3 * channels]
        layers: list[nn.Module] = []
        for (taps, dilation), before, after in zip(_LAYERS, widths[:-1], widths[1:], strict=True):
            pad = dilation * (taps // 2)
            layers += [
                nn.Conv1d(before, after, taps, dilation=dilation, padding=pad),
                nn.ReLU(),
                nn.BatchNorm1d(after),
            ]
        self.frames = nn.Sequential(*layers)
        self.segment = nn.Linear(6 * channels, embedding)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed (batch, frames, inputs); returns (batch, E), not normalized."""
        hidden = self.frames(frames.transpose(1, 2))
        deviation = hidden.var(dim=2, unbiased=False).clamp_min(_VARIANCE_FLOOR).sqrt()
        embedding: torch.Tensor = self.segment(torch.cat([hidden.mean(dim=2), deviation], dim=1))
        return embedding
