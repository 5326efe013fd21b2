"""Released features and a target voice to speech; nothing private can enter here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import frame_count
from voxveil.errors import InputError
from voxveil.pitch.scale import hz_to_unit
from voxveil.privacy import Released, require_released
from voxveil.speaker.targets import Target
from voxveil.synthesis.acoustic import AcousticModel
from voxveil.synthesis.pitch_mapping import vocoder_f0
from voxveil.synthesis.source import noise_source
from voxveil.synthesis.vocoder import Vocoder
from voxveil.training.loop import device

__all__ = ["Synthesizer"]

Array = NDArray[np.float32]


class Synthesizer:
    """Speaks released content with a target voice.

    Args:
        acoustic: The system's acoustic model.
        vocoder: The vocoder.
        pitch_conversion: Move F0 to the target's statistics even where pitch carries no noise.
    """

    def __init__(self, acoustic: AcousticModel, vocoder: Vocoder, *, pitch_conversion: bool) -> None:
        self._acoustic = acoustic.to(device()).eval()
        self._vocoder = vocoder.to(device()).eval()
        self._convert = pitch_conversion

    @classmethod
    def load(cls, acoustic: Path, vocoder: Path, *, pitch_conversion: bool) -> Synthesizer:
        """Load both models from their folders."""
        return cls(AcousticModel.load(acoustic), Vocoder.load(vocoder), pitch_conversion=pitch_conversion)

    def synthesize(
        self, content: Released[Array], pitch: Released[Array], target: Target, samples: int
    ) -> Array:
        """Return speech.

        Args:
            content: Released (K, M) content vectors.
            pitch: Released (K,) pitch on the unit scale.
            target: The voice, chosen independently of the utterance.
            samples: Number of samples n, public by definition; K = n // 160 + 1.

        Returns:
            (n,) float32 at 16 kHz. Equal arguments give equal speech: the noise of the voice is a
            public function of n.

        Raises:
            PrivacyError: Content or pitch did not go through a privacy mechanism.
            InputError: Their frame counts do not fit ``samples``.
        """
        vectors: Array = require_released(content, "content").value
        unit: Array = require_released(pitch, "pitch").value
        frames = frame_count(samples)
        if samples < 1 or vectors.shape != (frames, self._acoustic.size.content) or unit.shape != (frames,):
            raise InputError(
                f"synthesis of {samples} samples needs {frames} frames of {self._acoustic.size.content}-dim"
                f" content and {frames} of pitch, got {vectors.shape} and {unit.shape}"
            )
        noisy = not pitch.loss.unbounded
        f0, moved = vocoder_f0(unit, target, convert=self._convert, noisy=noisy)
        # The acoustic model sees pitch as it did in training: as released, or as converted.
        heights = hz_to_unit(moved) if self._convert and not noisy else unit
        with torch.inference_mode():
            log_mel, voicing = self._acoustic.predict(
                _batch(vectors), _batch(heights), _batch(target.embedding)
            )
            voiced = (voicing > 0.5).to(log_mel.dtype)
            audio = self._vocoder(log_mel, _batch(f0), voiced, _batch(noise_source(samples)))
        result: Array = audio[0].cpu().numpy().astype(np.float32)
        return result


def _batch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))[None].to(device())
