"""Training crops: random stretches of log-mel frames at three speeds, drawn by (seed, step).

A voice played faster or slower has another pitch and other formants, so each speed counts as a
speaker of its own (as in the x-vector recipes of Kaldi and SpeechBrain): three times as many
classes from the same recordings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import MEL_BANDS, SAMPLE_RATE
from voxveil.audio.mel import log_mel
from voxveil.corpus.split import Split
from voxveil.errors import InputError
from voxveil.seeding import stream
from voxveil.speaker.clips import MINIMUM_SAMPLES, tiled

__all__ = ["SPEEDS", "CropPlan", "Crops"]

#: Playing speeds; class ``i + speakers * j`` is speaker i at ``SPEEDS[j]``.
SPEEDS = (1.0, 0.9, 1.1)

#: Frames kept in memory at most, in bytes.
_CACHE_BYTES = 2 << 30


@dataclass(frozen=True)
class CropPlan:
    """How crops are drawn.

    Attributes:
        seed: The run's seed.
        name: Names the random stream, e.g. ``train_speaker``.
        batch: Crops per step.
        frames: Frames (10 ms) per crop.
        speeds: Playing speeds, each with classes of its own.
    """

    seed: int
    name: str
    batch: int
    frames: int
    speeds: tuple[float, ...] = SPEEDS


class Crops:
    """Draws the batch of any step; equal (seed, name, step) give equal batches."""

    def __init__(self, split: Split, plan: CropPlan) -> None:
        speakers = split.speakers
        if len(speakers) < 2:
            raise InputError(f"{split.folder}: {len(speakers)} speaker; an encoder needs at least 2")
        self._split, self._plan = split, plan
        self._items = [[u.id for u in split if u.speaker == speaker] for speaker in speakers]
        self._cache: dict[tuple[str, float], NDArray[np.float32]] = {}
        self._cached = 0

    @property
    def classes(self) -> int:
        """Number of classes: speakers times speeds."""
        return len(self._items) * len(self._plan.speeds)

    def batch(self, step: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the (batch, frames, 80) log-mel and (batch,) classes of a step."""
        plan = self._plan
        rng = stream(plan.seed, plan.name, "crops", step)
        labels = rng.choice(self.classes, plan.batch, replace=self.classes < plan.batch)
        crops = np.stack([self._crop(rng, int(label)) for label in labels])
        return crops, labels.astype(np.int64)

    def _crop(self, rng: np.random.Generator, label: int) -> NDArray[np.float32]:
        speed_index, speaker = divmod(label, len(self._items))
        items, wanted = self._items[speaker], self._plan.frames
        frames = self._frames(items[rng.integers(len(items))], self._plan.speeds[speed_index])
        start = int(rng.integers(max(1, len(frames) - wanted + 1)))
        crop = frames[start : start + wanted]
        # An utterance shorter than a crop is repeated.
        return crop if len(crop) == wanted else np.resize(crop, (wanted, MEL_BANDS))

    def _frames(self, item: str, speed: float) -> NDArray[np.float32]:
        frames = self._cache.get((item, speed))
        if frames is None:
            audio = self._split.audio(item)
            if len(audio) == 0:
                raise InputError(f"utterance {item}: no samples")
            if speed != 1.0:
                audio = _resampled(audio, speed)
            mel = log_mel(torch.from_numpy(tiled(audio, MINIMUM_SAMPLES))[None])[0]
            frames = mel.numpy()
            if self._cached + frames.nbytes <= _CACHE_BYTES:
                self._cache[item, speed] = frames
                self._cached += frames.nbytes
        return frames


def _resampled(audio: NDArray[np.float32], speed: float) -> NDArray[np.float32]:
    import soxr

    return np.asarray(soxr.resample(audio, SAMPLE_RATE * speed, SAMPLE_RATE, quality="MQ"), np.float32)
