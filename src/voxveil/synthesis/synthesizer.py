"""Synthesis of speech from released features and a target voice, without private input.

A long recording is synthesized in windows, with the result of a single one. Windows hold released features
only. One is spoken when the next has been released, with as many of its neighbours' frames around it as the
models see; the phase of the pulse train and the noise of the voice run on. So windows meet without a seam,
and memory does not grow with the recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, frame_count
from voxveil.features.pitch.scale import hz_to_unit
from voxveil.features.speaker.targets import Target
from voxveil.privacy import Released, require_released
from voxveil.runtime.errors import InputError
from voxveil.synthesis.acoustic import AcousticModel
from voxveil.synthesis.pitch_mapping import vocoder_f0
from voxveil.synthesis.source import NoiseTape, cycles, noise_source
from voxveil.synthesis.vocoders import AnyVocoder, load_vocoder
from voxveil.training.loop import device

__all__ = ["Spoken", "Synthesizer", "WindowedSpeech"]

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Spoken:
    """Inputs of the models, computed from released values only.

    Attributes:
        vectors: (K, M) content.
        heights: (K,) pitch on the unit scale, 0 = unvoiced.
        f0: (K,) Hz, positive.
    """

    vectors: Array
    heights: Array
    f0: Array


class Synthesizer:
    """Speaks released content with a target voice.

    Args:
        acoustic: The system's acoustic model.
        vocoder: The vocoder.
        pitch_conversion: Move F0 to the target's statistics even where pitch carries no noise.
    """

    def __init__(self, acoustic: AcousticModel, vocoder: AnyVocoder, *, pitch_conversion: bool) -> None:
        self._acoustic = acoustic.to(device()).eval()
        self._vocoder = vocoder.to(device()).eval()
        self._convert = pitch_conversion

    @classmethod
    def load(cls, acoustic: Path, vocoder: Path, *, pitch_conversion: bool) -> Synthesizer:
        """Load both models from their folders."""
        return cls(AcousticModel.load(acoustic), load_vocoder(vocoder), pitch_conversion=pitch_conversion)

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
        features = self.model_inputs(content, pitch, target, frame_count(samples) if samples > 0 else 0)
        return self.speak(features, target, noise_source(samples))

    @property
    def reach(self) -> int:
        """Frames each side that a sample of speech sees."""
        return self._acoustic.reach + self._vocoder.reach

    def model_inputs(
        self, content: Released[Array], pitch: Released[Array], target: Target, frames: int
    ) -> Spoken:
        """Return the models' inputs for released features; see :meth:`synthesize`.

        Args:
            content: Released (K, M).
            pitch: Released (K,).
            target: The voice.
            frames: K that the sample count asks for.
        """
        vectors: Array = require_released(content, "content").value
        unit: Array = require_released(pitch, "pitch").value
        size = self._acoustic.size.content
        if frames < 1 or vectors.shape != (frames, size) or unit.shape != (frames,):
            raise InputError(
                f"synthesis needs {frames} frames of {size}-dim content and {frames} of pitch,"
                f" got {vectors.shape} and {unit.shape}"
            )
        noisy = not pitch.loss.unbounded
        f0, moved = vocoder_f0(unit, target, convert=self._convert, noisy=noisy)
        # The acoustic model sees pitch as it did in training: as released, or as converted.
        return Spoken(vectors, hz_to_unit(moved) if self._convert and not noisy else unit, f0)

    def speak(self, features: Spoken, target: Target, noise: Array, start: float = 0.0) -> Array:
        """Return (n,) speech.

        Args:
            features: K frames, K = n // 160 + 1.
            target: The voice.
            noise: (n,) noise of the voice.
            start: Periods of F0 before the first sample.
        """
        with torch.inference_mode():
            log_mel, voicing = self._acoustic.predict(
                _batch(features.vectors), _batch(features.heights), _batch(target.embedding)
            )
            voiced = (voicing > 0.5).to(log_mel.dtype)
            audio = self._vocoder(log_mel, _batch(features.f0), voiced, _batch(noise), start)
        result: Array = audio[0].cpu().numpy().astype(np.float32)
        return result


class WindowedSpeech:
    """Synthesizes released windows in order, with a delay of one window.

    Args:
        synthesizer: What speaks.
        target: The one voice of the recording.
        samples: Sample count of the whole recording.
    """

    def __init__(self, synthesizer: Synthesizer, target: Target, samples: int) -> None:
        self._synthesizer, self._target, self._samples = synthesizer, target, samples
        self._noise = NoiseTape(samples)
        self._before: Spoken | None = None
        self._now: Spoken | None = None
        self._first = 0
        self._cycles = 0.0

    def push(self, content: Released[Array], pitch: Released[Array]) -> Array:
        """Take a window of k frames; return (n,) speech of the one before it, nothing at the first."""
        window = self._synthesizer.model_inputs(content, pitch, self._target, len(pitch.value))
        audio = self._speak(window) if self._now is not None else np.zeros(0, np.float32)
        if self._now is not None:
            self._first += len(self._now.f0)
            self._before = _last(self._now, self._synthesizer.reach)
        self._now = window
        return audio

    def finish(self) -> Array:
        """Return (n,) speech of the last window."""
        return self._speak(None)

    def _speak(self, following: Spoken | None) -> Array:
        if self._now is None:
            return np.zeros(0, np.float32)
        reach = self._synthesizer.reach
        parts = [part for part in (self._before, self._now) if part is not None]
        if following is not None:
            parts.append(_first(following, reach))
        whole = Spoken(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(self._now)))
        lead = 0 if self._before is None else len(self._before.f0)
        first, frames = self._first - lead, len(whole.f0)
        if following is None and first + frames != frame_count(self._samples):
            raise InputError(f"{first + frames} frames were released of {frame_count(self._samples)}")
        count = self._samples - HOP * first if following is None else HOP * (frames - 1)
        passed = cycles(torch.from_numpy(whole.f0)[None], count)[0]
        skipped, end = HOP * lead, HOP * (lead + len(self._now.f0))
        start = self._cycles - (float(passed[skipped - 1]) if skipped else 0.0)
        noise = self._noise.take(HOP * first, HOP * first + count)
        audio = self._synthesizer.speak(whole, self._target, noise, start)
        stop = count if following is None else end
        self._cycles = (start + float(passed[stop - 1])) % 1.0
        return audio[skipped:stop]


def _first(window: Spoken, frames: int) -> Spoken:
    return Spoken(*(value[:frames] for value in vars(window).values()))


def _last(window: Spoken, frames: int) -> Spoken:
    return Spoken(*(value[-frames:] for value in vars(window).values()))


def _batch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))[None].to(device())
