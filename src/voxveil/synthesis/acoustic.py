"""The acoustic model: released content and pitch plus a target voice to log-mel and voicing.

Residual convolutions over time with the target embedding and pitch added in every block. Each
frame is normalized by itself (no statistic over the utterance), so a result does not depend
on how long the utterance is or what is computed beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import MEL_BANDS
from voxveil.synthesis.network import MelNetwork
from voxveil.training.ranks import total

__all__ = ["AcousticModel", "AcousticSize", "acoustic_loss"]

_DILATIONS = (1, 2, 4, 1)


@dataclass(frozen=True)
class AcousticSize:
    """Everything needed to rebuild the network.

    Attributes:
        content: Size M of a content vector.
        embedding: Size E of a target embedding.
        channels: Width of the network.
        layers: Residual blocks.
    """

    content: int
    embedding: int
    channels: int
    layers: int


class _Block(nn.Module):
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.mix = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.leave = nn.Conv1d(channels, channels, 1)

    def forward(self, hidden: torch.Tensor, voice: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(hidden.square().mean(dim=1, keepdim=True) + 1e-5)
        result: torch.Tensor = hidden + self.leave(functional.silu(self.mix(hidden * scale) + voice))
        return result


class AcousticModel(MelNetwork):
    """Content (K, M), pitch (K,) and target (E,) to log-mel (K, 80) and voicing (K,)."""

    kind = "acoustic"
    size_type = AcousticSize
    size: AcousticSize

    def __init__(self, size: AcousticSize) -> None:
        super().__init__(size)
        self.content = nn.Conv1d(size.content, size.channels, 3, padding=1)
        self.pitch = nn.Conv1d(2, size.channels, 5, padding=2)
        self.target = nn.Linear(size.embedding, size.channels)
        self.blocks = nn.ModuleList(
            _Block(size.channels, _DILATIONS[i % len(_DILATIONS)]) for i in range(size.layers)
        )
        self.leave = nn.Conv1d(size.channels, MEL_BANDS + 1, 1)

    @property
    def reach(self) -> int:
        """Frames each side that a predicted frame sees."""
        return 2 + sum(_DILATIONS[i % len(_DILATIONS)] for i in range(self.size.layers))

    def forward(
        self, content: torch.Tensor, pitch: torch.Tensor, embedding: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the normalized log-mel (batch, K, 80) and voicing logits (batch, K).

        Args:
            content: (batch, K, M) released content vectors of L1 norm 1.
            pitch: (batch, K) released pitch on the unit scale, 0 = unvoiced.
            embedding: (batch, E) unit-norm target embeddings.
        """
        # Times M: an entry of a dense vector of L1 norm 1 is then of size 1. A constant, so that
        # what noise does to one frame does not depend on the others.
        scaled = content.transpose(1, 2) * float(self.size.content)
        scaled = scaled.clamp(-8.0, 8.0)
        heights = torch.stack([pitch, (pitch > 0).to(pitch.dtype)], dim=1)
        target = self.target(embedding * self.size.embedding**0.5)[:, :, None]
        voice = functional.silu(self.pitch(heights) + target)
        hidden = self.content(scaled) + voice
        for block in self.blocks:
            hidden = block(hidden, voice)
        result = self.leave(functional.silu(hidden)).transpose(1, 2)
        return result[..., :MEL_BANDS], result[..., MEL_BANDS]

    def predict(
        self, content: torch.Tensor, pitch: torch.Tensor, embedding: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the natural-log mel (batch, K, 80) and voicing probabilities (batch, K); see forward."""
        normal, voicing = self(content, pitch, embedding)
        return normal * self.mel_sd + self.mel_mean, torch.sigmoid(voicing)


def acoustic_loss(
    predicted: torch.Tensor,
    logits: torch.Tensor,
    wanted: torch.Tensor,
    voiced: torch.Tensor,
    mask: torch.Tensor,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss: L1 on log-mel and on its differences over time, and voicing cross-entropy.

    It is that of the whole batch where several processes have a share of it each.

    Args:
        predicted: (batch, K, 80) normalized log-mel.
        logits: (batch, K) voicing logits.
        wanted: (batch, K, 80) normalized log-mel of the speech.
        voiced: (batch, K) 1 where the speech is voiced.
        mask: (batch, K) 1 for frames of the utterance, 0 for padding.

    Returns:
        (scalar loss, values for the curve).
    """
    count = total(mask.sum()).clamp_min(1.0)
    level = total(((predicted - wanted).abs().mean(dim=2) * mask).sum()) / count
    both = mask[:, 1:] * mask[:, :-1]
    moves = (predicted.diff(dim=1) - wanted.diff(dim=1)).abs().mean(dim=2)
    motion = total((moves * both).sum()) / total(both.sum()).clamp_min(1.0)
    entropy = functional.binary_cross_entropy_with_logits(logits, voiced, reduction="none")
    voicing = total((entropy * mask).sum()) / count
    values = {"mel": float(level.detach()), "voicing": float(voicing.detach())}
    return level + motion + 0.5 * voicing, values
