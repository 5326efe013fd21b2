"""Data augmentation of training speech: speed perturbation and spectral masking.

Ko et al., "Audio augmentation for speech recognition", Interspeech 2015; Park et al., "SpecAugment",
Interspeech 2019. Both are SpeechBrain's; what they draw comes from torch's generators, which a step seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.research.asr.network import quiet
from voxveil.training.placeholders import remove_placeholders

__all__ = ["Augmentation"]


class Augmentation:
    """Changes the speech of a training step.

    Args:
        speeds: Playing speeds, one of which is drawn for the whole batch.
        spec_augment: Whether spectra are masked.
    """

    def __init__(self, speeds: Sequence[float], spec_augment: bool) -> None:
        with quiet():
            from speechbrain.augment.freq_domain import SpectrogramDrop
            from speechbrain.augment.time_domain import SpeedPerturb

        remove_placeholders()
        self._percents = [100.0 * speed for speed in speeds]
        self._speed: Any = SpeedPerturb(SAMPLE_RATE, speeds=self._percents) if len(speeds) > 1 else None
        # SpecAugment's LibriSpeech policy in SpeechBrain's recipe: frames of 10 ms, bands of 80.
        self._masks: list[Any] = (
            [
                SpectrogramDrop(15, 25, 2, 5, replace="zeros", dim=1),
                SpectrogramDrop(25, 35, 2, 2, replace="zeros", dim=2),
            ]
            if spec_augment
            else []
        )

    def played(self, audio: torch.Tensor, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (batch, N) audio at a drawn speed, and the (batch,) samples that each has then."""
        if self._speed is None:
            return audio, samples
        # On the device of the audio, not on the one SpeechBrain moves it to unless told.
        self._speed.device = audio.device
        changed = self._speed(audio)
        percent = self._percents[int(self._speed.samp_index)]
        return changed, (samples * 100.0 / percent).floor().long().clamp(min=1, max=changed.shape[1])

    def masked(self, normal: torch.Tensor) -> torch.Tensor:
        """Return normalized (batch, K, 80) log-mel with stretches set to their mean, 0."""
        for mask in self._masks:
            normal = mask(normal)
        return normal
