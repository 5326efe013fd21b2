"""Anonymization systems as compositions of a pitch and a content extractor.

========================  =========  =========  ================
system                    pitch      content    pitch conversion
========================  =========  =========  ================
Anon                      identity   identity   no
Anon+PC                   identity   identity   yes
Anon+DP_Pitch             Laplace    identity   (always, if noisy)
Anon+DP_BN                identity   Laplace    no
Anon+DP                   Laplace    Laplace    (always, if noisy)
original                  passed through, nothing is promised
========================  =========  =========  ================

An utterance of K frames costs epsilon1 + K epsilon2. Losses do not depend on the data, so they
are known, and announced, before any noise is drawn. This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import frame_count
from voxveil.config.model import ContentVariant, PitchVariant
from voxveil.errors import InputError, PrivacyError
from voxveil.privacy import (
    Identity,
    LaplaceCube,
    LaplaceSimplex,
    Loss,
    NoiseSource,
    Released,
    SystemNoise,
    compose,
    content_mechanism,
    pitch_mechanism,
    utterance_loss,
)
from voxveil.storage.atomic import read_json

if TYPE_CHECKING:
    from voxveil.content.extractor import ContentExtractor
    from voxveil.pitch.extractor import PitchExtractor

__all__ = ["Features", "LossRule", "System", "utterance_total"]

Array = NDArray[np.float32]


@dataclass(frozen=True)
class LossRule:
    """What releasing an utterance costs, as a function of its frame count alone.

    Attributes:
        pitch: Mechanism of the pitch stream.
        content: Mechanism of the content stream.
        channels: Channels C of the pitch noise layer; 0 for the identity.
    """

    pitch: Identity | LaplaceCube
    content: Identity | LaplaceSimplex
    channels: int = 0

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
        second = content_mechanism(ContentVariant(content_json["mechanism"], content_json["epsilon"]))
        channels = pitch_json.get("channels", 0) if isinstance(first, LaplaceCube) else 0
        if isinstance(first, LaplaceCube) and (not isinstance(channels, int) or channels < 1):
            raise InputError(f"{Path(pitch) / 'model.json'}: channels must be at least 1, got {channels!r}")
        return LossRule(first, second, channels)

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
            "content": self.content.loss_for((frames, 1), secret=secret),
        }

    def to_json(self) -> dict[str, Any]:
        """Return both losses as JSON; the pitch sensitivity is a formula in the frame count K."""
        losses = {name: loss.to_json() for name, loss in self.losses(1).items()}
        if self.channels:
            losses["pitch"]["sensitivity"] = f"{self.channels} K"
        return losses


def utterance_total(losses: Mapping[str, Loss], vectors: int) -> Loss:
    """Return the loss of a whole utterance of ``vectors`` content vectors: epsilon1 + K epsilon2."""
    return compose(*(utterance_loss(losses[name], vectors) for name in ("pitch", "content")))


@dataclass(frozen=True)
class Features:
    """Everything of one utterance that reaches the synthesizer.

    Attributes:
        content: Released (K, M) vectors.
        pitch: Released (K,) on the unit scale.
        losses: Loss of each stream.
    """

    content: Released[Array]
    pitch: Released[Array]
    losses: Mapping[str, Loss]

    @property
    def utterance(self) -> Loss:
        """The loss of the whole utterance."""
        return utterance_total(self.losses, len(self.content.value))


@dataclass(frozen=True)
class System:
    """The private half of a system: from an utterance to released features.

    Attributes:
        pitch: Its pitch extractor.
        content: Its content extractor.
        rule: What a release costs.
    """

    pitch: PitchExtractor
    content: ContentExtractor
    rule: LossRule

    @staticmethod
    def load(pitch: Path, content: Path) -> System:
        """Load both extractors from their model folders."""
        from voxveil.content.extractor import ContentExtractor
        from voxveil.pitch.extractor import PitchExtractor

        rule = LossRule.read(pitch, content)
        return System(PitchExtractor.load(pitch), ContentExtractor.load(content), rule)

    def release_features(self, audio: Array, f0: Array, noise: NoiseSource) -> Features:
        """Release pitch and content of one utterance.

        Args:
            audio: (n,) at 16 kHz.
            f0: (K,) in Hz, 0 where unvoiced, K = n // 160 + 1.
            noise: Where the noise comes from: the operating system's for a private utterance.

        Raises:
            PrivacyError: What was charged is not what :attr:`rule` announces.
        """
        frames = frame_count(len(audio))
        if f0.shape != (frames,):
            raise InputError(f"{len(audio)} samples have {frames} frames, F0 has shape {f0.shape}")
        pitch = self.pitch.release(f0, noise)
        content = self.content.release(audio, noise)
        losses = {"pitch": pitch.loss, "content": content.loss}
        announced = self.rule.losses(frames, secret=isinstance(noise, SystemNoise))
        for name, loss in losses.items():
            if loss != announced[name]:
                raise PrivacyError(f"{name} was released at {loss}, announced was {announced[name]}")
        if len(content.value) != frames:
            raise PrivacyError(f"{len(content.value)} content vectors were released, announced were {frames}")
        return Features(content, pitch, losses)


def _description(folder: Path) -> dict[str, Any]:
    path = Path(folder) / "model.json"
    content = read_json(path)
    for name in ("mechanism", "epsilon"):
        if not isinstance(content, dict) or name not in content:
            raise InputError(f"{path}: {name} is missing; is this an extractor?")
    return dict(content)
