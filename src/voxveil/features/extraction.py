"""Anonymization systems as compositions of a pitch and a content extractor.

========================  =========  =========  ================
system                    pitch      content    pitch conversion
========================  =========  =========  ================
Anon                      identity   identity   no
Anon+PC                   identity   identity   yes
Anon+DP_Pitch             Laplace    identity   (always, if noisy)
Anon+DP_BN                identity   Laplace    no
Anon+DP                   Laplace    Laplace    (always, if noisy)
words voice               recognized words in a ready voice
original                  passed through, nothing is promised
mcadams                   signal processing, nothing is promised
copy synthesis            spoken again as it was, nothing is promised
========================  =========  =========  ================

What a system costs is its :class:`voxveil.privacy.loss_rule.LossRule`. This module imports no torch; loading
a system does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import frame_count
from voxveil.privacy import Loss, NoiseSource, Released, SystemNoise
from voxveil.privacy.loss_rule import LossRule, utterance_total
from voxveil.runtime.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from voxveil.features.content.extractor import ContentExtractor
    from voxveil.features.pitch.extractor import PitchExtractor

__all__ = ["Features", "System"]

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Features:
    """Everything of one utterance that reaches the synthesizer.

    Attributes:
        content: Released (K, M) vectors, one for each frame.
        pitch: Released (K,) on the unit scale.
        losses: Loss of each stream.
        vectors: Number of content vectors that were released; frames may share one.
    """

    content: Released[Array]
    pitch: Released[Array]
    losses: Mapping[str, Loss]
    vectors: int

    @property
    def utterance(self) -> Loss:
        """The loss of the whole utterance."""
        return utterance_total(self.losses, self.vectors)


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
        from voxveil.features.content.extractor import ContentExtractor
        from voxveil.features.pitch.extractor import PitchExtractor

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
        self._require_announced(losses, self.rule.losses(frames, secret=isinstance(noise, SystemNoise)))
        if len(content.value) != frames:
            raise PrivacyError(f"content has {len(content.value)} frames, the utterance {frames}")
        return Features(content, pitch, losses, self.rule.vectors(frames))

    def release_window(
        self, audio: Array, f0: Array, span: slice, noise: NoiseSource
    ) -> tuple[Released[Array], Released[Array]]:
        """Release content (k, M) and pitch (k,) of one window of a long recording.

        Args:
            audio: (n,) samples of the window and of what lies around it: context that is only read.
            f0: (K,) in Hz, K = n // 160 + 1.
            span: The k frames of the window, of K.
            noise: Where the noise comes from.

        Raises:
            PrivacyError: What was charged is not what :attr:`rule` says.
        """
        pitch = self.pitch.release(f0[span], noise)
        content = self.content.release(audio, noise, span)
        frames = len(f0[span])
        secret = isinstance(noise, SystemNoise)
        of_window = {"pitch": self.rule.window_loss(frames, secret=secret)}
        announced = {**self.rule.losses(frames, secret=secret), **of_window}
        self._require_announced({"pitch": pitch.loss, "content": content.loss}, announced)
        if not len(content.value) == len(pitch.value) == frames:
            raise PrivacyError(f"a window of {frames} frames has {len(content.value)} frames of content")
        return content, pitch

    def _require_announced(self, losses: Mapping[str, Loss], announced: Mapping[str, Loss]) -> None:
        for name, loss in losses.items():
            if loss != announced[name]:
                raise PrivacyError(f"{name} was released at {loss}, announced was {announced[name]}")
        if self.content.every != self.rule.every:
            raise PrivacyError(
                f"a content vector covers {self.content.every} frames, announced were {self.rule.every}"
            )
