"""Synthesis of speech from released features and a target voice, without private input.

A long recording is synthesized in windows, with the result of a single one. Windows hold released features
only. One is spoken when the next has been released, with as many of its neighbours' frames around it as the
models see; the phase of the pulse train and the noise of the voice run on. So windows meet without a seam,
and memory does not grow with the recording.

Released pitch is mapped to the vocoder's F0 in Hz on every frame. That post-processes released values; its
statistics are those of the released sequence itself, never of the private F0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, frame_count
from voxveil.features.pitch.scale import F0_MAX, F0_MIN, hz_to_unit, unit_to_hz
from voxveil.features.speaker.targets import Target
from voxveil.privacy import Released, require_released
from voxveil.runtime.errors import InputError
from voxveil.synthesis.acoustic import AcousticModel
from voxveil.synthesis.source import NoiseTape, cycles, fill_unvoiced, noise_source
from voxveil.synthesis.vocoders import AnyVocoder, load_vocoder
from voxveil.training.loop import device

__all__ = ["Spoken", "Synthesizer", "WindowedSpeech", "convert_pitch", "smooth", "vocoder_f0"]

#: Frames (10 ms) of the window that smooths a noisy released sequence.
SMOOTHING = 15
#: Smallest standard deviation of ln F0 that is scaled up to the target's.
_FLAT = 1e-3

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
            self._before = _part(self._now, slice(-self._synthesizer.reach, None))
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
            parts.append(_part(following, slice(reach)))
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


def convert_pitch(f0: Array, target: Target) -> Array:
    """Move F0 to the target's mean and standard deviation on the log scale.

    Args:
        f0: (K,) Hz, 0 where unvoiced.
        target: Whose F0 statistics to take.

    Returns:
        (K,) Hz in [60, 400], 0 where ``f0`` is.
    """
    converted = np.zeros_like(f0)
    voiced = f0 > 0
    if not voiced.any():
        return converted
    log_f0 = np.log(f0[voiced].astype(np.float64))
    sd = float(log_f0.std())
    scale = target.log_f0_sd / sd if sd > _FLAT else 0.0
    moved = np.exp((log_f0 - log_f0.mean()) * scale + target.log_f0_mean)
    converted[voiced] = np.clip(moved, F0_MIN, F0_MAX)
    return converted


def smooth(f0: Array) -> Array:
    """Return ln-F0 averaged by a Hann window over voiced frames; 0 stays 0.

    A sequence released with noise jumps from frame to frame as no voice does.
    """
    voiced = (f0 > 0).astype(np.float64)
    window = np.hanning(SMOOTHING + 2)[1:-1]
    weight = _convolve(voiced, window)
    log_f0 = np.log(np.where(f0 > 0, f0, 1.0).astype(np.float64))
    average = _convolve(log_f0 * voiced, window) / np.where(weight > 0, weight, 1.0)
    return np.where(f0 > 0, np.exp(average), 0.0).astype(np.float32)


def vocoder_f0(unit: Array, target: Target, *, convert: bool, noisy: bool) -> tuple[Array, Array]:
    """Return F0 for the vocoder, and the same with its unvoiced frames for the acoustic model.

    Args:
        unit: (K,) released pitch on the unit scale.
        target: The voice to speak with.
        convert: Move F0 to the target's statistics (pitch conversion).
        noisy: The pitch was released with noise: it is smoothed and always moved to the target's
            statistics, since its own mean and spread are mostly noise.

    Returns:
        (F0 in Hz (K,), positive on every frame; the same (K,) with 0 where released as unvoiced).
    """
    f0 = unit_to_hz(unit)
    if noisy:
        f0 = smooth(f0)
    if convert or noisy:
        f0 = convert_pitch(f0, target)
    default = float(np.clip(np.exp(target.log_f0_mean), F0_MIN, F0_MAX))
    return fill_unvoiced(f0, default), f0


def _convolve(values: NDArray[np.float64], window: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.convolve(values, window)[len(window) // 2 :][: len(values)]


def _part(window: Spoken, frames: slice) -> Spoken:
    return Spoken(*(value[frames] for value in vars(window).values()))


def _batch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))[None].to(device())
