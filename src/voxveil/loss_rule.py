"""What releasing an utterance costs: epsilon1 + K epsilon2 for K released content vectors.

With Gaussian content it is a rho, epsilon1^2 / 2 + K rho2, and no epsilon.

Losses do not depend on the data, so they are known, and announced, before any noise is drawn.
This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.config.model import PitchVariant
from voxveil.errors import InputError, PrivacyError
from voxveil.privacy import (
    ContentMechanism,
    Identity,
    LaplaceCube,
    Loss,
    PitchMechanism,
    compose,
    described_content,
    pitch_mechanism,
    utterance_loss,
)
from voxveil.storage.atomic import read_json

__all__ = ["LossRule", "utterance_total"]


@dataclass(frozen=True)
class LossRule:
    """What releasing an utterance costs, as a function of its frame count alone.

    Attributes:
        pitch: Mechanism of the pitch stream.
        content: Mechanism of the content stream.
        channels: Channels C of the pitch noise layer; 0 for the identity.
        every: Frames per released content vector.
    """

    pitch: PitchMechanism
    content: ContentMechanism
    channels: int = 0
    every: int = 1

    @staticmethod
    def nothing_promised() -> LossRule:
        """Return the rule of the original system: both streams pass through, epsilon is infinite."""
        return LossRule(Identity("utterance"), Identity("vector"))

    @staticmethod
    def read(pitch: Path, content: Path) -> LossRule:
        """Read the rule from the ``model.json`` of a pitch and of a content model.

        Raises:
            InputError: A file is missing or does not name its mechanism.
        """
        pitch_json, content_json = _description(pitch), _description(content)
        first = pitch_mechanism(PitchVariant(pitch_json["mechanism"], pitch_json["epsilon"]))
        second = described_content(content_json)
        channels = pitch_json.get("channels", 0) if isinstance(first, LaplaceCube) else 0
        if isinstance(first, LaplaceCube) and (not isinstance(channels, int) or channels < 1):
            raise InputError(f"{Path(pitch) / 'model.json'}: channels must be at least 1, got {channels!r}")
        every = content_json.get("every", 1)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"{Path(content) / 'model.json'}: every must be at least 1, got {every!r}")
        return LossRule(first, second, channels, every)

    @property
    def formula(self) -> str:
        """The loss of an utterance in words."""
        if self.losses(1)["content"].measure == "zcdp":
            return "zCDP rho = epsilon(pitch)^2 / 2 + K rho(content), no pure epsilon"
        return "epsilon = epsilon(pitch) + K epsilon(content)"

    def vectors(self, frames: int) -> int:
        """Return how many content vectors an utterance of ``frames`` frames releases."""
        return -(-frames // self.every)

    def losses(self, frames: int, *, secret: bool = True) -> dict[str, Loss]:
        """Return the loss of each stream, ``pitch`` per utterance and ``content`` per vector.

        Args:
            frames: Frame count K of the utterance, at least 1.
            secret: The noise comes from the operating system (private speech).
        """
        if frames < 1:
            raise PrivacyError(f"an utterance has at least one frame, got {frames}")
        return {
            "pitch": self.pitch.loss_for((self.channels, frames), secret=secret),
            "content": self.content.loss_for((self.vectors(frames), 1), secret=secret),
        }

    def to_json(self) -> dict[str, Any]:
        """Return both losses as JSON; the pitch sensitivity is a formula in the frame count K."""
        losses = {name: loss.to_json() for name, loss in self.losses(1).items()}
        if self.channels:
            losses["pitch"]["sensitivity"] = f"{self.channels} K"
        if self.every > 1:
            losses["content"]["frames_per_vector"] = self.every
        return losses


def utterance_total(losses: Mapping[str, Loss], vectors: int) -> Loss:
    """Return the loss of a whole utterance of ``vectors`` content vectors, composed by type."""
    return compose(*(utterance_loss(losses[name], vectors) for name in ("pitch", "content")))


def _description(folder: Path) -> dict[str, Any]:
    path = Path(folder) / "model.json"
    content = read_json(path)
    for name in ("mechanism", "epsilon"):
        if not isinstance(content, dict) or name not in content:
            raise InputError(f"{path}: {name} is missing; is this an extractor?")
    return dict(content)
