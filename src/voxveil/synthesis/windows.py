"""Windowed synthesis of a long recording, with the result of a single window.

Windows hold released features only. One is spoken when the next has been released, with as many of its
neighbours' frames around it as the models see; the phase of the pulse train and the noise of the voice
run on. So windows meet without a seam, and memory does not grow with the recording.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, frame_count
from voxveil.features.speaker.targets import Target
from voxveil.privacy import Released
from voxveil.runtime.errors import InputError
from voxveil.synthesis.source import NoiseTape, cycles
from voxveil.synthesis.synthesizer import Spoken, Synthesizer

__all__ = ["WindowedSpeech"]

Array = NDArray[np.float32]


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
