"""The prosody embedding: F0, energy and rhythm of an utterance, without its spectrum.

40 numbers of an utterance, of three kinds: F0 (pYIN), energy and rhythm. What of them tells public
speakers apart is learnt (LDA and PLDA), so this is the library's own non-timbral attacker; it is no
substitute for one that was pre-trained on thousands of hours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.attack.cepstra import frame_log_mel, is_speech
from voxveil.attack.pyin import pitch_values, track_pitches
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.runtime.atomic import write_json

__all__ = ["Prosody", "prosody_vector"]

FloatArray = NDArray[np.float64]

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
#: Bands of the energy contour's modulation spectrum, in Hz.
_MODULATION = ((0.5, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (8.0, 12.0), (12.0, 20.0))
_RATE = 100.0
_CONTOUR = 4


class Prosody:
    """The front end of the prosody attacker."""

    kind = "prosody"

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, None]:
        """Return the front end, which has nothing to train."""
        return cls(), None

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Return the front end, which has nothing to read."""
        return cls()

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (40,) prosody vector of a clip."""
        return prosody_vector(audio, name)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json``, the only file."""
        write_json(Path(folder) / "model.json", {"format": 1, **facts})


def prosody_vector(audio: NDArray[np.float32], name: str) -> FloatArray:
    """Describe the prosody of an utterance.

    Args:
        audio: (n,) 16 kHz.
        name: What to call the clip in an error.

    Returns:
        (40,): F0 in semitones (15 values), energy in dB (9), rhythm (16).
    """
    clip = at_least_minimum(audio, name)
    pitches = track_pitches(clip)
    mel = frame_log_mel(clip, name)
    speech = is_speech(mel)
    level = 20.0 / np.log(10.0) * np.log(np.exp(mel).mean(axis=1))
    return np.concatenate([_f0(pitches), _energy(level, speech), _rhythm(pitches >= 0, level, speech)])


def _f0(pitches: NDArray[np.int64]) -> FloatArray:
    """Return mean, deviation, quantiles, movement, slope and contour of F0, in semitones above 100 Hz."""
    voiced = np.flatnonzero(pitches >= 0)
    if len(voiced) < 2:
        return np.zeros(11 + _CONTOUR)
    tones = 12.0 * np.log2(pitch_values()[pitches[voiced]] / 100.0)
    steps = np.diff(tones)[np.diff(voiced) == 1]
    movement = [float(np.abs(steps).mean()), float(steps.std())] if len(steps) else [0.0, 0.0]
    contour = np.interp(np.linspace(voiced[0], voiced[-1], 64), voiced, tones)
    waves = np.cos(np.pi * np.arange(1, _CONTOUR + 1)[:, None] * (np.arange(64) + 0.5) / 64)
    time = (voiced - voiced.mean()) / _RATE
    slope = float(time @ tones / max(float(time @ time), 1e-9))
    spread = float(np.ptp(np.quantile(tones, [0.05, 0.95])))
    kept = [tones.mean(), tones.std(), *np.quantile(tones, _SHARES), *movement, slope, spread]
    return np.array([*kept, *(waves @ (contour - contour.mean()) / 64)])


def _energy(level: FloatArray, speech: NDArray[np.bool_]) -> FloatArray:
    """Return deviation, quantiles and movement of the level of speech, in dB below its loudest."""
    speech_level = level[speech] - level.max()
    steps = np.diff(level)[speech[1:] & speech[:-1]]
    movement = [float(np.abs(steps).mean()), float(steps.std())] if len(steps) else [0.0, 0.0]
    return np.array([speech_level.mean(), speech_level.std(), *np.quantile(speech_level, _SHARES), *movement])


def _rhythm(voiced: NDArray[np.bool_], level: FloatArray, speech: NDArray[np.bool_]) -> FloatArray:
    """Return durations of voiced, unvoiced, speech and silent stretches, and the energy modulation."""
    seconds = len(voiced) / _RATE
    lengths = [_log_runs(voiced), _log_runs(~voiced), _log_runs(speech)]
    centred = level - level.mean()
    spectrum = np.abs(np.fft.rfft(centred * np.hanning(len(centred)), 4096)) ** 2
    rates = np.fft.rfftfreq(4096, 1.0 / _RATE)
    bands = [float(spectrum[(rates >= low) & (rates < high)].sum()) for low, high in _MODULATION]
    shares = np.log(np.array(bands) / max(sum(bands), 1e-12) + 1e-4)
    onsets = int((np.diff(voiced.astype(np.int8)) == 1).sum()) / seconds
    pauses = int((np.diff(speech.astype(np.int8)) == -1).sum()) / seconds
    return np.array(
        [voiced.mean(), speech.mean(), onsets, pauses, *(x for pair in lengths for x in pair), *shares]
    )


def _log_runs(flags: NDArray[np.bool_]) -> tuple[float, float]:
    """Return mean and deviation of the log length in frames of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    runs = np.log(edges[1::2] - edges[::2]) if len(edges) else np.zeros(1)
    return float(runs.mean()), float(runs.std())
