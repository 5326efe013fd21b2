"""Factorized time-delay layers (TDNN-F; Povey et al., "Semi-orthogonal low-rank matrix factorization
for deep neural networks", Interspeech 2018).
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

__all__ = ["FactorizedLayer", "TimeDelayLayer", "constrain", "orthogonality_error"]

#: Share of a layer's input added to its output (Kaldi's bypass-scale).
_BYPASS = 0.66


class TimeDelayLayer(nn.Module):
    """Convolution over frames, ReLU, layer norm over the channels of each frame.

    Layer norm instead of Kaldi's batch norm: a frame's result then depends on that frame's
    own context only, never on what else is in the batch.

    Args:
        size_in: Channels in.
        size_out: Channels out.
        kernel: Odd width in taps.
        dilation: Frames between taps.
    """

    def __init__(self, size_in: int, size_out: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        self.reach = kernel // 2 * dilation
        self.conv = nn.Conv1d(size_in, size_out, kernel, dilation=dilation, padding=self.reach)
        self.norm = nn.LayerNorm(size_out)

    def forward(self, frames: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, size_in, K) to (batch, size_out, K); ``mask`` (batch, 1, K) zeroes the padding."""
        return _normed(self.norm, functional.relu(self.conv(frames))) * mask


class FactorizedLayer(nn.Module):
    """A TDNN-F layer: linear to a low rank (semi-orthogonal), affine back, ReLU, norm, bypass.

    Args:
        size: Channels in and out.
        factor: Rank.
        stride: The linear part sees frames t - stride and t, the affine part t and t + stride.
    """

    def __init__(self, size: int, factor: int, stride: int) -> None:
        super().__init__()
        self.reach = stride
        self.linear = nn.Conv1d(size, factor, 2, dilation=stride, bias=False)
        self.affine = nn.Conv1d(factor, size, 2, dilation=stride)
        self.norm = nn.LayerNorm(size)

    def forward(self, frames: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map (batch, size, K) to the same shape; ``mask`` (batch, 1, K) zeroes the padding."""
        low = self.linear(functional.pad(frames, (self.reach, 0))) * mask
        high = functional.relu(self.affine(functional.pad(low, (0, self.reach))))
        return (_normed(self.norm, high) + _BYPASS * frames) * mask


def _normed(norm: nn.LayerNorm, frames: torch.Tensor) -> torch.Tensor:
    normed: torch.Tensor = norm(frames.transpose(1, 2)).transpose(1, 2)
    return normed


def constrain(model: nn.Module) -> None:
    """Move the linear part of every factorized layer one step towards a semi-orthogonal matrix.

    With M the (factor x 2 size) matrix, P = M M^T and alpha^2 = tr(P P^T) / tr(P) (a floating
    scale): M <- M - 4 nu / alpha^2 (P - alpha^2 I) M, nu = 1/8, slower while M is far off.
    Done every fourth step of training, as in Kaldi.
    """
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, FactorizedLayer):
                matrix = _matrix(layer)
                product = matrix @ matrix.T
                square, trace = product.square().sum(), product.diagonal().sum()
                scale = square / trace
                ratio = float(square * len(matrix) / trace.square())
                speed = 0.125 * (0.5 if ratio > 1.02 else 1.0) * (0.5 if ratio > 1.1 else 1.0)
                product.diagonal().sub_(scale)
                matrix = matrix - 4.0 * speed / scale * (product @ matrix)
                layer.linear.weight.copy_(matrix.view_as(layer.linear.weight))


def orthogonality_error(layer: FactorizedLayer) -> float:
    """Return the largest entry of |M M^T / alpha^2 - I|: 0 for a semi-orthogonal M."""
    with torch.no_grad():
        matrix = _matrix(layer)
        product = matrix @ matrix.T
        scale = product.square().sum() / product.diagonal().sum()
        return float((product / scale - torch.eye(len(product), device=product.device)).abs().max())


def _matrix(layer: FactorizedLayer) -> torch.Tensor:
    return layer.linear.weight.flatten(1)
