"""Histogram attackers: relative frequencies of F0 values and of codebook entries.

Both compare by Euclidean distance and know no network. The F0 histogram learns nothing, so its
original- and its anonymized-trained version are the same; the phone histogram learns its codebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.backends import Backend, Euclidean
from voxveil.attack.cepstra import speech_cepstra
from voxveil.attack.clips import training_clips
from voxveil.attack.codebook import fit_codebook, nearest
from voxveil.attack.pyin import FRAME, PITCH_HIGH, PITCH_LOW, PITCHES, track_pitches
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError

__all__ = ["SEGMENTS", "F0HistogramAttacker", "PhoneHistogramAttacker"]

Vector = NDArray[np.float32]

#: Parts that the speech of an utterance is cut into.
SEGMENTS = 20
#: Training frames that the codebook sees at most.
_CODEBOOK_FRAMES = 50_000
_CODEBOOK = "codebook.npz"


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

    @property
    def backend(self) -> Backend:
        """Euclidean distance."""
        return Euclidean()

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
        facts = {"attacker": self.name, "speakers": list(self.speakers), "training": self.training}
        write_json(Path(folder) / "model.json", {"format": 1, **facts, "pyin": pyin})

    @classmethod
    def load(cls, folder: Path) -> F0HistogramAttacker:
        """Read it back."""
        content = read_json(Path(folder) / "model.json")
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

    @property
    def backend(self) -> Backend:
        """Euclidean distance."""
        return Euclidean()

    @classmethod
    def train(
        cls, speech: Speech, params: TrainAttackerParams, *, training: str, seed: int
    ) -> PhoneHistogramAttacker:
        """Fit the codebook to cepstra of public speech."""
        frames = np.concatenate([speech_cepstra(audio, name) for name, audio in training_clips(speech)])
        codes = fit_codebook(frames, params.codebook, seed, at_most=_CODEBOOK_FRAMES)
        return cls(speech.speakers, training, codes)

    def embed(self, audio: NDArray[np.float32], name: str) -> Vector:
        """Return the (C,) mean over segments of square-rooted histograms."""
        codes = nearest(speech_cepstra(audio, name), self.codes)
        parts = np.array_split(codes, min(SEGMENTS, len(codes)))
        histograms = [np.bincount(part, minlength=len(self.codes)) / len(part) for part in parts]
        mean: Vector = np.sqrt(np.stack(histograms)).mean(axis=0).astype(np.float32)
        return mean

    def save(self, folder: Path) -> None:
        """Write ``model.json`` and ``codebook.npz``."""
        facts = {"attacker": self.name, "speakers": list(self.speakers), "training": self.training}
        write_json(Path(folder) / "model.json", {"format": 1, **facts, "segments": SEGMENTS})
        write_arrays(Path(folder) / _CODEBOOK, {"codes": self.codes})

    @classmethod
    def load(cls, folder: Path) -> PhoneHistogramAttacker:
        """Read it back."""
        content = read_json(Path(folder) / "model.json")
        codes = read_arrays(Path(folder) / _CODEBOOK, ["codes"])["codes"]
        if codes.ndim != 2 or not np.isfinite(codes).all():
            raise InputError(f"{Path(folder) / _CODEBOOK}: the codebook is no table of finite numbers")
        return cls(content["speakers"], content["training"], codes)
