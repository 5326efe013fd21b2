"""The F0 autoencoder with a noise layer ("Differentially private speaker anonymization", 2023).

Encoder: three convolutions of C channels, each with a sigmoid: h in [0,1]^(C x K). Noise layer:
added by a :mod:`voxveil.privacy` mechanism, in training and evaluation alike. Decoder: clip to
[0,1], two convolutions of C channels with sigmoid, one linear layer. Loss: 1 - Pearson
correlation of input and output sequence, per utterance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.training.ranks import total

__all__ = [
    "KERNEL",
    "PitchAutoencoder",
    "decode_one",
    "encode_one",
    "frame_mask",
    "pearson",
    "pearson_loss",
]

#: Width of every convolution in frames; an entry of h sees 3 * (KERNEL // 2) frames each side.
KERNEL = 5
#: Weights start this many times larger than Glorot's: five sigmoids in a row would else stay linear.
_GAIN = 4.0
#: Subtracted from what enters a layer, which lies in [0, 1]: centred inputs train in fewer steps.
_CENTRE = 0.5
#: Variance per frame below which a sequence counts as constant.
_FLAT = 1e-10


class PitchAutoencoder(nn.Module):
    """Encoder and decoder; the noise between them comes from the caller.

    Frames beyond an utterance's end are zero before every convolution, as they are for an
    utterance alone, so padding and batch change nothing.

    Args:
        channels: C.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        sizes = [1, channels, channels, channels]
        self.encoder = nn.ModuleList(
            nn.Conv1d(a, b, KERNEL, padding=KERNEL // 2) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        self.decoder = nn.ModuleList(
            nn.Conv1d(channels, channels, KERNEL, padding=KERNEL // 2) for _ in range(2)
        )
        self.output = nn.Conv1d(channels, 1, 1)
        for layer in [*self.encoder, *self.decoder]:
            nn.init.xavier_uniform_(layer.weight, gain=_GAIN)
            nn.init.zeros_(layer.bias)

    def encode(self, unit_f0: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return h.

        Args:
            unit_f0: (batch, K) on the unit scale.
            mask: (batch, K) 1 for frames of the utterance, 0 for padding.

        Returns:
            (batch, C, K) in [0, 1]; 0 in the padding.
        """
        hidden = unit_f0.unsqueeze(1) * mask.unsqueeze(1)
        for layer in self.encoder:
            hidden = torch.sigmoid(layer(hidden - _CENTRE * mask.unsqueeze(1))) * mask.unsqueeze(1)
        return hidden

    def decode(self, noisy: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the output sequence, on a scale of its own.

        Args:
            noisy: (batch, C, K) h with noise.
            mask: (batch, K).

        Returns:
            (batch, K); meaningless in the padding.
        """
        hidden = noisy.clamp(0.0, 1.0) * mask.unsqueeze(1)
        for layer in self.decoder:
            hidden = torch.sigmoid(layer(hidden - _CENTRE * mask.unsqueeze(1))) * mask.unsqueeze(1)
        output: torch.Tensor = self.output(hidden).squeeze(1)
        return output


def encode_one(model: PitchAutoencoder, unit_f0: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return h (C, K) of one utterance (K,) on the unit scale."""
    with torch.no_grad():
        h = model.encode(torch.from_numpy(unit_f0)[None], torch.ones(1, len(unit_f0)))[0]
    encoded: NDArray[np.float64] = h.double().numpy()
    return encoded


def decode_one(model: PitchAutoencoder, noisy: NDArray[Any]) -> NDArray[np.float64]:
    """Return the output sequence (K,) of one utterance's noisy h (C, K)."""
    with torch.no_grad():
        output = model.decode(torch.from_numpy(noisy).float()[None], torch.ones(1, noisy.shape[1]))[0]
    decoded: NDArray[np.float64] = output.double().numpy()
    return decoded


def frame_mask(lengths: torch.Tensor, frames: int) -> torch.Tensor:
    """Return (batch, frames) float: 1 in the first ``lengths[i]`` frames of row i."""
    return (torch.arange(frames, device=lengths.device)[None, :] < lengths[:, None]).float()


def pearson(
    output: torch.Tensor, target: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the Pearson correlation of each row, over its unmasked frames.

    Args:
        output: (batch, K). A row without variance has correlation 0: it tells nothing of the target.
        target: (batch, K).
        mask: (batch, K) 1 where a frame counts.

    Returns:
        (correlation, defined), both (batch,): where the target has no variance (an utterance
        without voiced frames) the correlation is undefined and 0 stands in its place.
    """
    count = mask.sum(dim=1).clamp(min=1.0)
    left = (output - (output * mask).sum(dim=1, keepdim=True) / count[:, None]) * mask
    right = (target - (target * mask).sum(dim=1, keepdim=True) / count[:, None]) * mask
    # Rounding leaves a constant row with a tiny variance; its direction would be arbitrary.
    floor = _FLAT * count
    power = right.square().sum(dim=1)
    defined = power > floor
    scale = torch.sqrt(torch.maximum(left.square().sum(dim=1), floor) * torch.maximum(power, floor))
    correlation = (left * right).sum(dim=1) / scale
    return torch.where(defined, correlation, torch.zeros_like(correlation)), defined


def pearson_loss(output: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean of 1 - Pearson over the utterances where it is defined (0 if there is none)."""
    correlation, defined = pearson(output, target, mask)
    weight = defined.float()
    return total(((1.0 - correlation) * weight).sum()) / total(weight.sum()).clamp(min=1.0)
