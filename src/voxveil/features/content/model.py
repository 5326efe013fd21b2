"""The acoustic model: TDNN-F on log-mel, an L1-normalized bottleneck, a noise layer, a classifier.

The noise layer is norm1(norm1(b) + noise) per frame, in training and evaluation alike; its noise
comes from a :mod:`voxveil.privacy` mechanism. Nothing is normalized over an utterance, a speaker
or a corpus of private speech: the input statistics are constants taken from public speech.

One bottleneck vector sees ``encoder.reach`` frames each side (13 with five layers) and half an
analysis window (20 ms) beyond; so 10 ms of input touches 2 reach + 5 released vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import MEL_BANDS
from voxveil.features.content.tdnnf import FactorizedLayer, TimeDelayLayer
from voxveil.runtime.errors import InputError

__all__ = ["ContentModel", "ContentSize", "norm1_torch", "norm2_torch", "pooled_frames", "spread_frames"]

#: Input splice of the first layer, in frames.
_SPLICE = 5
#: Taps and dilations of the classifier's layers: it may average noise over 13 frames.
_CLASSIFIER = ((5, 1), (5, 2))


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
