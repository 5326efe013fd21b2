"""Histogram attackers: relative frequencies of F0 values and of codebook entries.

Both compare by Euclidean distance and know no network. The F0 histogram learns nothing, so its
original- and its anonymized-trained version are the same; the phone histogram learns its codebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup, attacker_facts, training_clips
from voxveil.attack.backends import Euclidean
from voxveil.attack.cepstra import speech_cepstra
from voxveil.attack.pyin import FRAME, PITCH_HIGH, PITCH_LOW, PITCHES, track_pitches
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["SEGMENTS", "F0HistogramAttacker", "PhoneHistogramAttacker", "fit_codebook", "nearest"]

Vector = NDArray[np.float32]
FloatArray = NDArray[np.float64]

#: Parts that the speech of an utterance is cut into.
SEGMENTS = 20
#: Training frames that the codebook sees at most.
_CODEBOOK_FRAMES = 50_000
_CODEBOOK = "codebook.npz"
#: Rounds of k-means at most, and frames that are compared with the codes at once.
_ROUNDS = 20
_BLOCK = 8192


@dataclass(frozen=True)
class F0HistogramAttacker:
    """Share of voiced frames at each of 107 pitches from 65 to 450 Hz (pYIN, 64 ms frames, 10 ms hop).

    Attributes:
        speakers: Ids of the public speakers it was given; it learns nothing of them.
        training: State of their speech.
    """

    speakers: Sequence[str]
    training: str

    name = "f0_histogram"
    backend = Euclidean()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Return the attacker, which has nothing to train."""
        return TrainedAttacker(cls(speech.speakers, setup.training))

    def embed(self, audio: NDArray[np.float32], name: str) -> Vector:
        """Return the (107,) histogram, which sums to 1; uniform where nothing is voiced."""
        pitches = track_pitches(at_least_minimum(audio, name))
        voiced = pitches[pitches >= 0]
        if not len(voiced):
            return np.full(PITCHES, 1.0 / PITCHES, dtype=np.float32)
        counts = np.bincount(voiced, minlength=PITCHES)
        return (counts / len(voiced)).astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write ``model.json``."""
        pyin = {
            "frame_seconds": FRAME / SAMPLE_RATE,
            "hop_seconds": HOP / SAMPLE_RATE,
            "lowest_hertz": PITCH_LOW,
            "highest_hertz": PITCH_HIGH,
            "pitches": PITCHES,
        }
        write_json(Path(folder) / "model.json", {"format": 1, **attacker_facts(self), "pyin": pyin})

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> F0HistogramAttacker:
        """Return the attacker that ``content``, its ``model.json``, describes."""
        return cls(content["speakers"], content["training"])


@dataclass(frozen=True)
class PhoneHistogramAttacker:
    """Relative frequency of each entry of a codebook of cepstra.

    An energy threshold finds speech; its frames are cut into 20 segments of equal length, the square roots
    of each segment's histogram (Hellinger) are averaged. So a sound that is used everywhere counts more
    than one long sound.

    Attributes:
        speakers: Ids of the public speakers whose speech made the codebook.
        training: State of that speech.
        codes: (C, D) codebook.
    """

    speakers: Sequence[str]
    training: str
    codes: NDArray[np.float64]

    name = "phone_histogram"
    backend = Euclidean()

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Fit the codebook to cepstra of public speech."""
        frames = np.concatenate([speech_cepstra(audio, name) for name, audio in training_clips(speech)])
        codes = fit_codebook(frames, setup.params.codebook, setup.seed, at_most=_CODEBOOK_FRAMES)
        return TrainedAttacker(cls(speech.speakers, setup.training, codes))

    def embed(self, audio: NDArray[np.float32], name: str) -> Vector:
        """Return the (C,) mean over segments of square-rooted histograms."""
        codes = nearest(speech_cepstra(audio, name), self.codes)
        parts = np.array_split(codes, min(SEGMENTS, len(codes)))
        histograms = [np.bincount(part, minlength=len(self.codes)) / len(part) for part in parts]
        mean: Vector = np.sqrt(np.stack(histograms)).mean(axis=0).astype(np.float32)
        return mean

    def save(self, folder: Path) -> None:
        """Write ``model.json`` and ``codebook.npz``."""
        write_json(Path(folder) / "model.json", {"format": 1, **attacker_facts(self), "segments": SEGMENTS})
        write_arrays(Path(folder) / _CODEBOOK, {"codes": self.codes})

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> PhoneHistogramAttacker:
        """Read the codebook; ``content`` is the attacker's checked ``model.json``."""
        path = Path(folder) / _CODEBOOK
        codes = read_arrays(path, ["codes"])["codes"]
        if codes.ndim != 2 or not np.isfinite(codes).all():
            raise InputError(
                f"{Path(folder) / _CODEBOOK}: codes must be a 2-D array of finite numbers, got {codes.ndim}-D"
            )
        return cls(content["speakers"], content["training"], codes)


def fit_codebook(frames: FloatArray, size: int, seed: int, *, at_most: int) -> FloatArray:
    """Return the (size, D) centres of k-means (Lloyd) over frames.

    Starting centres are drawn as in k-means++; a centre that loses all its frames stays where it is.

    Args:
        frames: (F, D).
        size: Number of codes.
        seed: The run's seed.
        at_most: Frames that are used; drawn without replacement where there are more.

    Raises:
        InputError: There are fewer frames than codes.
    """
    if len(frames) < size:
        raise InputError(f"a codebook of {size} codes needs at least as many frames, got {len(frames)}")
    rng = stream(seed, "attack", "codebook")
    rows = frames[rng.choice(len(frames), at_most, replace=False)] if len(frames) > at_most else frames
    centres = rows[[int(rng.integers(len(rows)))]]
    distance = ((rows - centres[0]) ** 2).sum(axis=1)
    for _ in range(1, size):
        total = float(distance.sum())
        chosen = rng.choice(len(rows), p=distance / total) if total > 0 else int(rng.integers(len(rows)))
        centres = np.concatenate([centres, rows[[chosen]]])
        distance = np.minimum(distance, ((rows - rows[chosen]) ** 2).sum(axis=1))
    for _ in range(_ROUNDS):
        codes = nearest(rows, centres)
        counts = np.bincount(codes, minlength=size)
        sums = np.stack([np.bincount(codes, rows[:, d], size) for d in range(rows.shape[1])], axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        if np.allclose(moved, centres, atol=1e-6):
            break
        centres = moved
    return centres


def nearest(frames: FloatArray, codes: FloatArray) -> NDArray[np.int64]:
    """Return the (F,) index of the nearest code of each (F, D) frame."""
    squares = (codes**2).sum(axis=1)
    blocks = [
        (squares - 2.0 * frames[start : start + _BLOCK] @ codes.T).argmin(axis=1)
        for start in range(0, len(frames), _BLOCK)
    ]
    return np.concatenate(blocks)
