"""Public training speech: utterances with log-mel and F0, and random crops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, MEL_BANDS
from voxveil.audio.mel import FLOOR, log_mel
from voxveil.corpus.split import Split, Utterance
from voxveil.runtime.seeding import stream

__all__ = ["Crop", "Speech", "Spoken", "draw_crops", "mel_statistics"]

#: Utterances kept in memory at most, in bytes.
_CACHE_BYTES = 3 << 30
#: Utterances behind the normalization constants at most.
_STATISTICS = 200


@dataclass(frozen=True)
class Spoken:
    """A public utterance with its log-mel and F0.

    Attributes:
        audio: (n,) in [-1, 1].
        log_mel: (K, 80), natural log.
        f0: (K,) in Hz, 0 where unvoiced.
    """

    audio: NDArray[np.float32]
    log_mel: NDArray[np.float32]
    f0: NDArray[np.float32]

    def padded(self, frames: int) -> Spoken:
        """Return the utterance with silence after it, so that it has at least ``frames`` frames."""
        missing = frames - len(self.f0)
        if missing <= 0:
            return self
        samples = HOP * (frames - 1)
        return Spoken(
            np.pad(self.audio, (0, max(0, samples - len(self.audio)))),
            np.pad(self.log_mel, ((0, missing), (0, 0)), constant_values=np.log(np.float32(FLOOR))),
            np.pad(self.f0, (0, missing)),
        )


class Speech:
    """Reads utterances of a split, keeping as many in memory as fit."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._cache: dict[str, Spoken] = {}
        self._bytes = 0

    def __getitem__(self, item: str) -> Spoken:
        if item in self._cache:
            return self._cache[item]
        audio = self._split.audio(item)
        with torch.inference_mode():
            mel: NDArray[np.float32] = log_mel(torch.from_numpy(audio)[None])[0].numpy()
        utterance = Spoken(audio, mel, self._split.f0(item))
        size = audio.nbytes + mel.nbytes
        if self._bytes + size <= _CACHE_BYTES:
            self._cache[item] = utterance
            self._bytes += size
        return utterance


@dataclass(frozen=True)
class Crop:
    """Position of a crop: ``frames`` frames of ``item`` from frame ``start``."""

    item: str
    start: int


def draw_crops(
    utterances: Sequence[Utterance], frames: int, batch: int, seed: int, *keys: str | int
) -> list[Crop]:
    """Draw the crops of one step; they depend on (seed, keys) only.

    Args:
        utterances: What to draw from, each utterance equally likely.
        frames: Frames per crop; a shorter utterance is taken from its start.
        batch: Number of crops.
        seed: The run's seed.
        *keys: Name of the stream, with the step.
    """
    rng = stream(seed, *keys)
    chosen = [utterances[i] for i in rng.integers(0, len(utterances), batch)]
    return [Crop(u.id, int(rng.integers(0, max(1, u.frames - frames + 1)))) for u in chosen]


def mel_statistics(
    speech: Speech, utterances: Sequence[Utterance]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and standard deviation (80,) of the log-mel over frames of public utterances.

    At most 200 utterances, evenly spread over the list, are used. They become constants of the model.
    """
    step = max(1, len(utterances) // _STATISTICS)
    total = np.zeros(MEL_BANDS)
    square = np.zeros(MEL_BANDS)
    count = 0
    for utterance in utterances[::step][:_STATISTICS]:
        mel = speech[utterance.id].log_mel.astype(np.float64)
        total += mel.sum(axis=0)
        square += (mel**2).sum(axis=0)
        count += len(mel)
    mean = total / count
    sd = np.sqrt(np.maximum(square / count - mean**2, 1e-2))
    return mean.astype(np.float32), sd.astype(np.float32)
