"""The acoustic model: TDNN-F on log-mel, an L1-normalized bottleneck, a noise layer, a classifier.

The noise layer is norm1(norm1(b) + noise) per frame, in training and evaluation alike; its noise
comes from a :mod:`voxveil.privacy` mechanism. Nothing is normalized over an utterance, a speaker
or a corpus of private speech: the input statistics are constants taken from public speech.

One bottleneck vector sees ``encoder.reach`` frames each side (13 with five layers) and half an
analysis window (20 ms) beyond; so 10 ms of input touches 2 reach + 5 released vectors.

TDNN-F, factorized time-delay layers: Povey et al., "Semi-orthogonal low-rank matrix factorization for deep
neural networks", Interspeech 2018.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import MEL_BANDS
from voxveil.runtime.errors import InputError

__all__ = [
    "ContentModel",
    "ContentSize",
    "FactorizedLayer",
    "TimeDelayLayer",
    "constrain",
    "norm1_torch",
    "norm2_torch",
    "orthogonality_error",
    "pooled_frames",
    "spread_frames",
]

#: Input splice of the first layer, in frames.
_SPLICE = 5
#: Taps and dilations of the classifier's layers: it may average noise over 13 frames.
_CLASSIFIER = ((5, 1), (5, 2))
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


@dataclass(frozen=True)
class ContentSize:
    """Sizes that determine the shape of the model.

    Attributes:
        bottleneck: M.
        hidden: Width of the TDNN-F layers and the classifier.
        factor: Rank of the factorized weights.
        layers: TDNN-F layers.
        classes: What the classifier tells apart: phones or triphone states.
    """

    bottleneck: int
    hidden: int
    factor: int
    layers: int
    classes: int

    def to_json(self) -> dict[str, int]:
        """Return the sizes by name."""
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any], name: str) -> ContentSize:
        """Read the output of :meth:`to_json`; ``name`` is the file in errors."""
        try:
            return ContentSize(**{field: int(content[field]) for field in ContentSize.__dataclass_fields__})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{name}: wrong sizes of the model ({error})") from None


class ContentModel(nn.Module):
    """Encoder and classifier; the noise between them comes from the caller.

    Args:
        size: The shape.
    """

    mean: torch.Tensor
    sd: torch.Tensor

    def __init__(self, size: ContentSize) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.zeros(MEL_BANDS))
        self.register_buffer("sd", torch.ones(MEL_BANDS))
        self.input = TimeDelayLayer(MEL_BANDS, size.hidden, _SPLICE)
        self.layers = nn.ModuleList(
            FactorizedLayer(size.hidden, size.factor, 1 if index < 2 else 3) for index in range(size.layers)
        )
        self.bottleneck = nn.Conv1d(size.hidden, size.bottleneck, 1)
        sizes = [size.bottleneck, size.hidden]
        self.classifier = nn.ModuleList(
            TimeDelayLayer(width, size.hidden, taps, dilation)
            for width, (taps, dilation) in zip(sizes, _CLASSIFIER, strict=True)
        )
        self.output = nn.Conv1d(size.hidden, size.classes, 1)

    @property
    def reach(self) -> int:
        """Frames each side that a bottleneck vector sees (beside the analysis window)."""
        return self.input.reach + sum(layer.reach for layer in self._factorized())

    def _factorized(self) -> list[FactorizedLayer]:
        return [layer for layer in self.layers if isinstance(layer, FactorizedLayer)]

    def encode(self, mel: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the bottleneck before any normalization.

        Args:
            mel: (batch, K, 80) natural-log mel magnitudes.
            mask: (batch, K) 1 for frames of the utterance, 0 for padding.

        Returns:
            (batch, K, M).
        """
        keep = mask.unsqueeze(1)
        hidden = ((mel - self.mean) / self.sd).transpose(1, 2) * keep
        hidden = self.input(hidden, keep)
        for layer in self.layers:
            hidden = layer(hidden, keep)
        bottleneck: torch.Tensor = self.bottleneck(hidden).transpose(1, 2).float()
        return bottleneck

    def classify(self, content: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return log-posteriors of the classes.

        Args:
            content: (batch, K, M) of L1 norm 1 per vector.
            mask: (batch, K).

        Returns:
            (batch, K, classes) natural logarithms.
        """
        keep = mask.unsqueeze(1)
        # Entries of a vector of L1 norm 1 are of size 1/M; a constant factor brings them to size 1.
        hidden = content.transpose(1, 2) * self.size.bottleneck * keep
        for layer in self.classifier:
            hidden = layer(hidden, keep)
        return functional.log_softmax(self.output(hidden).transpose(1, 2).float(), dim=2)


def norm1_torch(vectors: torch.Tensor) -> torch.Tensor:
    """Scale each last-axis vector to L1 norm 1; a zero vector becomes the first unit vector.

    The differentiable twin of :func:`voxveil.privacy.norm1`, for training.
    """
    return _on_sphere(vectors, vectors.abs().sum(dim=-1, keepdim=True))


def norm2_torch(vectors: torch.Tensor) -> torch.Tensor:
    """Scale each last-axis vector to L2 norm 1; a zero vector becomes the first unit vector."""
    squares = vectors.square().sum(dim=-1, keepdim=True)
    # The root has no gradient at zero, so zero vectors keep clear of it.
    roots = torch.where(squares > 0, squares, torch.ones_like(squares)).sqrt()
    return _on_sphere(vectors, roots * (squares > 0))


def _on_sphere(vectors: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    unit = functional.one_hot(torch.zeros((), dtype=torch.long, device=vectors.device), vectors.shape[-1])
    return torch.where(norms > 0, vectors / norms.clamp(min=1e-30), unit.to(vectors.dtype))


def pooled_frames(vectors: torch.Tensor, mask: torch.Tensor, every: int) -> torch.Tensor:
    """Return the mean of each group of ``every`` frames that belong to the utterance.

    Args:
        vectors: (batch, K, M).
        mask: (batch, K) 1 for frames of the utterance, 0 for padding.
        every: Frames per group; the last group may be smaller.

    Returns:
        (batch, ceil(K / every), M).
    """
    if every == 1:
        return vectors
    batch, frames, size = vectors.shape
    missing = -frames % every
    kept = functional.pad(vectors * mask.unsqueeze(2), (0, 0, 0, missing))
    sums = kept.reshape(batch, -1, every, size).sum(dim=2)
    counts = functional.pad(mask, (0, missing)).reshape(batch, -1, every).sum(dim=2)
    means: torch.Tensor = sums / counts.clamp(min=1.0).unsqueeze(2)
    return means


def spread_frames(vectors: torch.Tensor, every: int, frames: int) -> torch.Tensor:
    """Repeat every vector of (batch, groups, M) for its frames; returns (batch, frames, M)."""
    return vectors if every == 1 else vectors.repeat_interleave(every, dim=1)[:, :frames]
