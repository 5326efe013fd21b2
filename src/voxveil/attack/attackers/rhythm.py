"""The rhythm front end: durations of phones and pauses in their context, without pitch, level or spectrum.

Phone durations identify speakers, also in anonymized speech that keeps them: Tomashenko, Vincent, Tommasi,
"Analysis of speech temporal dynamics in the context of speaker verification and voice anonymization", 2025.
Here the phones come from forced alignment of recognized words. A linear model of public speech predicts the
log duration of a phone from the phone and its neighbours; the residuals, in standard deviations, describe
the speaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainingSetup, training_clips
from voxveil.attack.recognized import PhoneTimes, WordSource
from voxveil.corpus.phones import PHONES
from voxveil.corpus.split import Speech
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import Progress

__all__ = ["Durations", "Rhythm", "rhythm_values"]

FloatArray = NDArray[np.float64]

_CLASSES = (
    "SIL",
    "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW",
    "L R W Y",
    "M N NG",
    "B D G",
    "K P T",
    "DH JH V Z ZH",
    "CH F HH S SH TH",
)
#: (phones,) class of each phone: pause, vowel, approximant, nasal, stop or fricative with or without voice.
_CLASS = np.array([next(i for i, c in enumerate(_CLASSES) if phone in c.split()) for phone in PHONES])
_PAUSE, _VOWEL = 0, 1
#: Weight of the prediction that is penalized, in phones, so that rare contexts predict little.
_RIDGE = 5.0
#: Phones by which a mean is drawn to 0, the value of public speech on average.
_SHRINK = 3.0
#: Shortest duration that is told apart, in seconds.
_SHORTEST = 0.01
_FILE = "durations.npz"


@dataclass(frozen=True)
class Durations:
    """Predictor of log durations from phone, class of the phone before and of the one after.

    Attributes:
        weights: (phones + 2 classes,) summands in ln seconds.
        deviation: (phones,) standard deviation of what the prediction leaves, above 0.
    """

    weights: FloatArray
    deviation: FloatArray

    @classmethod
    def fit(cls, clips: Sequence[PhoneTimes]) -> Durations:
        """Fit by ridge regression to the phones of clips; pauses are context only."""
        parts = [_tokens(clip) for clip in clips]
        columns = np.concatenate([columns for columns, _ in parts])
        logs = np.concatenate([logs for _, logs in parts])
        size, mean = len(PHONES) + 2 * len(_CLASSES), float(logs.mean()) if len(logs) else 0.0
        gram, target = _RIDGE * np.eye(size), np.zeros(size)
        for column in columns.T:
            for other in columns.T:
                np.add.at(gram, (column, other), 1.0)
            np.add.at(target, column, logs - mean)
        weights = np.asarray(np.linalg.solve(gram, target), np.float64)
        weights[: len(PHONES)] += mean
        left = logs - weights[columns].sum(axis=1)
        counts = np.bincount(columns[:, 0], minlength=len(PHONES))
        squares = np.bincount(columns[:, 0], left**2, len(PHONES))
        overall = max(float((left**2).mean()) if len(left) else 1.0, 1e-4)
        deviation: FloatArray = np.sqrt((squares + _RIDGE * overall) / (counts + _RIDGE))
        return cls(weights, deviation)

    def residuals(self, clip: PhoneTimes) -> tuple[NDArray[np.int64], FloatArray]:
        """Return (n, 3) phone, class before and class after of the phones, and their (n,) standard scores."""
        columns, logs = _tokens(clip)
        scores = (logs - self.weights[columns].sum(axis=1)) / self.deviation[columns[:, 0]]
        return columns, scores


class Rhythm:
    """The front end of the rhythm attacker.

    An utterance that cannot be aligned has the vector zero, which is the mean of public speech.

    Args:
        source: The recognizer.
        durations: The predictor of durations.
        centre: (E,) mean over public speech of :func:`rhythm_values`.
    """

    kind = "rhythm"

    def __init__(self, source: WordSource, durations: Durations, centre: FloatArray) -> None:
        self._source, self._durations, self._centre = source, durations, centre

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, None]:
        """Align public speech, and fit the predictor of durations to it.

        Raises:
            InputError: No utterance can be aligned.
        """
        source = WordSource.named(setup.params)
        recognized = source.open()
        total = len(list(speech))
        progress = Progress("phones of public speech", total, "utterance")
        clips = []
        for done, (name, audio) in enumerate(training_clips(speech), 1):
            found = recognized.phones(audio, name)
            clips += [] if found is None else [found]
            progress.update(done)
        if not clips:
            raise InputError(
                f"attacker {cls.kind}: none of {total} public utterances of {speech.folder} could be aligned"
                " with its recognized words; at least 1 must be"
            )
        durations = Durations.fit(clips)
        centre = np.mean([rhythm_values(clip, durations) for clip in clips], axis=0)
        return cls(source, durations, centre), None

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read what :meth:`save` wrote; ``content`` is ``model.json``.

        Raises:
            InputError: A file is missing, or an array has another shape.
        """
        path = Path(folder) / _FILE
        names = ("weights", "deviation", "centre")
        arrays = read_arrays(path, names)
        shapes = ((len(PHONES) + 2 * len(_CLASSES),), (len(PHONES),), (_SIZE,))
        for name, shape in zip(names, shapes, strict=True):
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise InputError(
                    f"{path}: {name} must be finite numbers of shape {shape}, got {arrays[name].shape}"
                )
        durations = Durations(arrays["weights"], arrays["deviation"])
        return cls(WordSource.read(Path(folder), content), durations, arrays["centre"])

    def raw(self, audio: NDArray[np.float32], name: str) -> FloatArray:
        """Return the (E,) rhythm vector of a clip; zeros where it cannot be aligned."""
        found = self._source.open().phones(audio, name)
        return self.blank if found is None else rhythm_values(found, self._durations) - self._centre

    @property
    def blank(self) -> FloatArray:
        """Vector of an utterance that cannot be aligned."""
        return np.zeros(_SIZE)

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json``, ``durations.npz`` and a copy of an imported recognizer."""
        write_json(Path(folder) / "model.json", {"format": 1, **facts, **self._source.write(Path(folder))})
        write_arrays(Path(folder) / _FILE, {**vars(self._durations), "centre": self._centre})


def rhythm_values(clip: PhoneTimes, durations: Durations) -> FloatArray:
    """Describe the rhythm of an utterance.

    Args:
        clip: Its phones; pauses before the first and after the last phone are left out.
        durations: Predictor of durations.

    Returns:
        (70,): mean standard score of the duration of each of the 39 phones; mean and log deviation of the
        seven classes; mean before and after pauses; mean, deviation and correlation of neighbours over all
        phones (each drawn to its value in public speech where there are few phones); pauses (5), rates (3),
        and the variability of vowels and consonants (4).
    """
    columns, scores = durations.residuals(clip)
    phones, before, after = columns[:, 0], columns[:, 1] - _BEFORE, columns[:, 2] - _AFTER
    of_phones = np.bincount(phones, scores, len(PHONES)) / (
        np.bincount(phones, minlength=len(PHONES)) + _SHRINK
    )
    kinds = range(1, len(_CLASSES))
    classes = _CLASS[phones]
    means = [_mean(scores[classes == kind]) for kind in kinds]
    spreads = [_log_deviation(scores[classes == kind]) for kind in kinds]
    edges = [_mean(scores[after == _PAUSE]), _mean(scores[before == _PAUSE])]
    overall = [_mean(scores), _log_deviation(scores), _mean(scores[1:] * scores[:-1])]
    return np.concatenate([of_phones[1:], means, spreads, edges, overall, _timing(clip)])


def _timing(clip: PhoneTimes) -> list[float]:
    """Return pauses, rates, and the variability of vowel and consonant intervals."""
    kinds, seconds = _trimmed(clip)
    pauses = np.log(np.maximum(seconds[kinds == _PAUSE], _SHORTEST))
    speech, total = float(seconds[kinds != _PAUSE].sum()), max(float(seconds.sum()), _SHORTEST)
    # Log durations of pauses around 0.2 s, so that no pause and the usual pause are alike.
    deviations = pauses - np.log(0.2)
    few = [
        len(pauses) / total,
        1.0 - speech / total,
        _mean(deviations),
        _log_deviation(deviations),
        float(deviations.max(initial=-3.0)),
    ]
    phones = int((kinds != _PAUSE).sum())
    vowels = int((kinds == _VOWEL).sum())
    rates = [
        float(np.log((phones + 1.0) / max(speech, _SHORTEST))),
        float(np.log((phones + 1.0) / total)),
        float(np.log((vowels + 1.0) / max(speech, _SHORTEST))),
    ]
    share = float(seconds[kinds == _VOWEL].sum()) / max(speech, _SHORTEST)
    intervals = [_intervals(kinds, seconds, vowel=vowel) for vowel in (True, False)]
    return [
        *few,
        *rates,
        share,
        *(_variability(found) for found in intervals),
        _log_deviation(np.log(intervals[0])),
    ]


def _intervals(kinds: NDArray[np.int64], seconds: FloatArray, *, vowel: bool) -> FloatArray:
    """Return the lengths of the stretches of vowels, or of consonants, between others and pauses."""
    wanted = (kinds == _VOWEL) if vowel else (kinds > _VOWEL)
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
    sums = np.concatenate([[0.0], np.cumsum(seconds)])
    lengths: FloatArray = np.maximum(sums[bounds[1::2]] - sums[bounds[::2]], _SHORTEST)
    return lengths


def _variability(lengths: FloatArray) -> float:
    """Return the normalized pairwise variability index of lengths: mean |a - b| / ((a + b) / 2)."""
    if len(lengths) < 2:
        return 0.5
    differences = np.abs(np.diff(lengths)) / ((lengths[1:] + lengths[:-1]) / 2)
    return float((differences.sum() + 0.5 * _SHRINK) / (len(differences) + _SHRINK))


def _mean(values: FloatArray) -> float:
    """Return the mean of values drawn to 0."""
    return float(values.sum() / (len(values) + _SHRINK))


def _log_deviation(values: FloatArray) -> float:
    """Return the log standard deviation of values drawn to 0."""
    squares = float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0
    return 0.5 * float(np.log((squares + _SHRINK) / (len(values) + _SHRINK)))


_BEFORE, _AFTER = len(PHONES), len(PHONES) + len(_CLASSES)


def _trimmed(clip: PhoneTimes) -> tuple[NDArray[np.int64], FloatArray]:
    """Return class and duration of the phones from the first to the last that is no pause."""
    kinds = _CLASS[clip.labels]
    inside = np.flatnonzero(kinds != _PAUSE)
    part = slice(inside[0], inside[-1] + 1) if len(inside) else slice(0, 0)
    return kinds[part], clip.seconds[part]


def _tokens(clip: PhoneTimes) -> tuple[NDArray[np.int64], FloatArray]:
    """Return (n, 3) columns of the one-hot design (phone, class before, class after) and (n,) ln seconds.

    The ends of the utterance count as pauses.
    """
    kinds = np.concatenate([[_PAUSE], _CLASS[clip.labels], [_PAUSE]])
    chosen = np.flatnonzero(kinds[1:-1] != _PAUSE)
    columns = np.stack([clip.labels[chosen], _BEFORE + kinds[chosen], _AFTER + kinds[chosen + 2]], axis=1)
    return columns, np.log(np.maximum(clip.seconds[chosen], _SHORTEST))


#: Length of a rhythm vector.
_SIZE = len(PHONES) - 1 + 2 * (len(_CLASSES) - 1) + 5 + 12
