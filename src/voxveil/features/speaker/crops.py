"""Training crops: random stretches of log-mel frames at three speeds, drawn by (seed, step).

A voice played faster or slower has another pitch and other formants, so each speed counts as a
speaker of its own (as in the x-vector recipes of Kaldi and SpeechBrain): three times as many
classes from the same recordings. Noise is mixed in if asked for, in the log-mel domain: powers of independent
signals add on average, so a mixture's mel magnitudes are the root of the sum of squares. It leaves out the
phase between the two; as an augmentation it only has to be plausible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import MEL_BANDS, SAMPLE_RATE
from voxveil.audio.mel import log_mel
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import MINIMUM_SAMPLES, tiled
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.training import ranks

__all__ = ["SPEEDS", "CropPlan", "Crops", "log_mel_frames", "mixed", "stationary"]

#: Playing speeds; class ``i + speakers * j`` is speaker i at ``SPEEDS[j]``.
SPEEDS = (1.0, 0.9, 1.1)

#: Frames kept in memory at most, in bytes.
_CACHE_BYTES = 2 << 30


@dataclass(frozen=True)
class CropPlan:
    """Parameters of crops.

    Attributes:
        seed: The run's seed.
        name: Names the random stream, e.g. ``train_speaker``.
        batch: Crops per step.
        frames: Frames (10 ms) per crop.
        speeds: Playing speeds, each with classes of its own.
        noise: Share of crops with noise or another voice mixed in, in [0, 1].
    """

    seed: int
    name: str
    batch: int
    frames: int
    speeds: tuple[float, ...] = SPEEDS
    noise: float = 0.0


def log_mel_frames(audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Return the (K, 80) log-mel of a clip that is long enough."""
    frames: NDArray[np.float32] = log_mel(torch.from_numpy(audio)[None])[0].numpy()
    return frames


class Crops:
    """Draws the batch of any step; equal (seed, name, step) give equal batches.

    Args:
        split: Speech of at least 2 speakers.
        plan: How crops are drawn.
        features: Maps a clip and its name to (frames, values).
    """

    def __init__(
        self,
        split: Speech,
        plan: CropPlan,
        features: Callable[[NDArray[np.float32], str], NDArray[np.float32]] = log_mel_frames,
    ) -> None:
        speakers = split.speakers
        if len(speakers) < 2:
            raise InputError(f"{split.folder}: {len(speakers)} speaker; an encoder needs at least 2")
        self._split, self._plan, self._features = split, plan, features
        self._items = [[u.id for u in split if u.speaker == speaker] for speaker in speakers]
        self._cache: dict[tuple[str, float], NDArray[np.float32]] = {}
        self._cached = 0

    @property
    def classes(self) -> int:
        """Number of classes: speakers times speeds."""
        return len(self._items) * len(self._plan.speeds)

    def batch(self, step: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the (rows, frames, values) and (rows,) classes of a step: of this process's share of it."""
        plan = self._plan
        rng = stream(plan.seed, plan.name, "crops", step)
        labels = rng.choice(self.classes, plan.batch, replace=self.classes < plan.batch)
        generators = [rng] * plan.batch
        if ranks.count() > 1:
            # Each row from a stream of its own, so that nobody reads the speech of the others' rows.
            generators = [stream(plan.seed, plan.name, "crops", step, row) for row in range(plan.batch)]
        rows = ranks.share(plan.batch)
        crops = [
            self._noisy(generator, self._crop(generator, int(label)))
            for generator, label in zip(generators[rows], labels[rows], strict=True)
        ]
        return np.stack(crops), labels[rows].astype(np.int64)

    def _noisy(self, rng: np.random.Generator, crop: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self._plan.noise or rng.random() >= self._plan.noise:
            return crop
        if rng.random() < 0.5:
            return mixed(crop, stationary(rng, len(crop)), rng.uniform(0.0, 20.0))
        return mixed(crop, self._crop(rng, int(rng.integers(self.classes))), rng.uniform(5.0, 20.0))

    def _crop(self, rng: np.random.Generator, label: int) -> NDArray[np.float32]:
        speed_index, speaker = divmod(label, len(self._items))
        items, wanted = self._items[speaker], self._plan.frames
        frames = self._frames(items[rng.integers(len(items))], self._plan.speeds[speed_index])
        start = int(rng.integers(max(1, len(frames) - wanted + 1)))
        crop = frames[start : start + wanted]
        # An utterance shorter than a crop is repeated.
        return crop if len(crop) == wanted else np.resize(crop, (wanted, crop.shape[1]))

    def _frames(self, item: str, speed: float) -> NDArray[np.float32]:
        frames = self._cache.get((item, speed))
        if frames is None:
            audio = self._split.audio(item)
            if len(audio) == 0:
                raise InputError(f"utterance {item}: no samples")
            if speed != 1.0:
                audio = _resampled(audio, speed)
            frames = self._features(tiled(audio, MINIMUM_SAMPLES), f"utterance {item}")
            if self._cached + frames.nbytes <= _CACHE_BYTES:
                self._cache[item, speed] = frames
                self._cached += frames.nbytes
        return frames


def _resampled(audio: NDArray[np.float32], speed: float) -> NDArray[np.float32]:
    import soxr

    return np.asarray(soxr.resample(audio, SAMPLE_RATE * speed, SAMPLE_RATE, quality="MQ"), np.float32)


def mixed(clean: NDArray[np.float32], other: NDArray[np.float32], snr: float) -> NDArray[np.float32]:
    """Mix two log-mel crops.

    Args:
        clean: (frames, 80) natural-log mel magnitudes.
        other: (frames, 80) of what is mixed in.
        snr: Ratio of mean powers in dB.

    Returns:
        (frames, 80) natural-log mel magnitudes.
    """
    signal, noise = np.exp(2.0 * clean), np.exp(2.0 * other)
    gain = float(signal.mean()) / max(float(noise.mean()), 1e-30) / 10.0 ** (snr / 10.0)
    result: NDArray[np.float32] = (0.5 * np.log(signal + np.float32(gain) * noise)).astype(np.float32)
    return result


def stationary(rng: np.random.Generator, frames: int) -> NDArray[np.float32]:
    """Return (frames, 80) log-mel of noise with a random smooth spectrum and white fluctuation."""
    places = np.linspace(-1.0, 1.0, MEL_BANDS)
    slope, bend = rng.normal(0.0, 1.0, 2)
    shape = slope * places + bend * places**2
    noise: NDArray[np.float32] = (shape + rng.normal(0.0, 0.3, (frames, MEL_BANDS))).astype(np.float32)
    return noise
