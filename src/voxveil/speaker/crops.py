"""Training crops: random stretches of speech at three speeds, drawn by (seed, step).

A voice played faster or slower has another pitch and other formants, so each speed counts as a
speaker of its own (as in the x-vector recipes of Kaldi and SpeechBrain): three times as many
classes from the same recordings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.corpus.split import Split
from voxveil.errors import InputError
from voxveil.seeding import stream
from voxveil.speaker.clips import MINIMUM_SAMPLES, tiled

__all__ = ["SPEEDS", "CropPlan", "Crops"]

#: Playing speeds; class ``i + speakers * j`` is speaker i at ``SPEEDS[j]``.
SPEEDS = (1.0, 0.9, 1.1)

#: Decoded audio kept in memory at most, in bytes.
_CACHE_BYTES = 2 << 30


@dataclass(frozen=True)
class CropPlan:
    """How crops are drawn.

    Attributes:
        seed: The run's seed.
        name: Names the random stream, e.g. ``train_speaker``.
        batch: Crops per step.
        samples: Samples per crop.
        speeds: Playing speeds, each with classes of its own.
    """

    seed: int
    name: str
    batch: int
    samples: int
    speeds: tuple[float, ...] = SPEEDS


class Crops:
    """Draws the batch of any step; equal (seed, name, step) give equal batches."""

    def __init__(self, split: Split, plan: CropPlan) -> None:
        speakers = split.speakers
        if len(speakers) < 2:
            raise InputError(f"{split.folder}: {len(speakers)} speaker; an encoder needs at least 2")
        self._split, self._plan = split, plan
        self._items = [[u.id for u in split if u.speaker == speaker] for speaker in speakers]
        self._cache: dict[str, NDArray[np.float32]] = {}
        self._cached = 0

    @property
    def classes(self) -> int:
        """Number of classes: speakers times speeds."""
        return len(self._items) * len(self._plan.speeds)

    def batch(self, step: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the (batch, samples) audio and (batch,) classes of a step."""
        plan = self._plan
        rng = stream(plan.seed, plan.name, "crops", step)
        labels = rng.choice(self.classes, plan.batch, replace=self.classes < plan.batch)
        audio = np.stack([self._crop(rng, int(label)) for label in labels])
        return audio, labels.astype(np.int64)

    def _crop(self, rng: np.random.Generator, label: int) -> NDArray[np.float32]:
        speed_index, speaker = divmod(label, len(self._items))
        speed = self._plan.speeds[speed_index]
        items = self._items[speaker]
        audio = self._audio(items[rng.integers(len(items))])
        needed = round(self._plan.samples * speed)
        audio = tiled(audio, needed)
        start = int(rng.integers(len(audio) - needed + 1))
        crop = audio[start : start + needed]
        if speed != 1.0:
            crop = _resampled(crop, speed, self._plan.samples)
        return crop * np.float32(10.0 ** rng.uniform(-0.5, 0.5))

    def _audio(self, item: str) -> NDArray[np.float32]:
        audio = self._cache.get(item)
        if audio is None:
            audio = self._split.audio(item)
            if len(audio) == 0:
                raise InputError(f"utterance {item}: no samples")
            audio = tiled(audio, MINIMUM_SAMPLES)
            if self._cached + audio.nbytes <= _CACHE_BYTES:
                self._cache[item] = audio
                self._cached += audio.nbytes
        return audio


def _resampled(crop: NDArray[np.float32], speed: float, samples: int) -> NDArray[np.float32]:
    import soxr

    result = np.asarray(soxr.resample(crop, SAMPLE_RATE * speed, SAMPLE_RATE, quality="MQ"), np.float32)
    return tiled(result, samples)[:samples]
