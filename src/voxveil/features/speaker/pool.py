"""The public pool of target voices: their embeddings, F0 statistics and clusters.

Everything in it comes from public speech. Reading it needs neither torch nor scikit-learn, so a
bundle carries the pool and no speaker encoder.

F0 statistics are mean and standard deviation of log F0. An utterance with fewer than :data:`MINIMUM_VOICED`
voiced frames takes its speaker's statistics over all voiced frames. A speaker with fewer than that in all
utterances together has no voice to measure: it takes constants and is listed as having no voiced frames.

Clusters of voices come from affinity propagation on their cosines, which finds their number itself: Frey and
Dueck, "Clustering by passing messages between data points", Science 2007; used on x-vectors for the choice of
targets by Srivastava et al., "Design choices for x-vector based speaker anonymization", Interspeech 2020.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError, VoxveilError

__all__ = [
    "FALLBACK_MEAN",
    "FALLBACK_SD",
    "MINIMUM_VOICED",
    "PitchStatistics",
    "Pool",
    "PoolEntry",
    "build_pool",
    "cluster_voices",
    "nearest_voice_accuracy",
    "pitch_statistics",
    "speaker_means",
]

#: Voiced 10 ms frames below which statistics are not taken (0.1 s).
MINIMUM_VOICED = 10
#: Log of 155 Hz, between the common medians of male and female voices.
FALLBACK_MEAN = float(np.log(155.0))
#: In natural log: about 3 semitones.
FALLBACK_SD = 0.17
_DAMPINGS = (0.5, 0.7, 0.9, 0.95)


@dataclass(frozen=True)
class PoolEntry:
    """One public utterance.

    Attributes:
        utterance: Its id.
        speaker: Who speaks.
        sex: ``F`` or ``M``.
        embedding: (E,) unit-norm.
        f0: (K,) Hz, 0 where unvoiced.
    """

    utterance: str
    speaker: str
    sex: str
    embedding: NDArray[np.float32]
    f0: NDArray[np.float32]


@dataclass(frozen=True)
class Pool:
    """U public utterances, in the order they were added.

    Attributes:
        embeddings: (U, E) float32, unit-norm rows.
        utterances: (U,) ids.
        speakers: (U,) speaker of each utterance.
        sexes: (U,) ``F`` or ``M``.
        log_f0_mean: (U,) mean of the natural log of F0 in Hz over voiced frames; see above
            for utterances with too few.
        log_f0_sd: (U,) standard deviation of the same.
        clusters: (U,) cluster of the utterance's speaker, 0-based.
        unvoiced: Ids of the speakers with too few voiced frames, whose statistics are the fallback.
    """

    embeddings: NDArray[np.float32]
    utterances: NDArray[np.str_]
    speakers: NDArray[np.str_]
    sexes: NDArray[np.str_]
    log_f0_mean: NDArray[np.float64]
    log_f0_sd: NDArray[np.float64]
    clusters: NDArray[np.int64]
    unvoiced: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.utterances)

    def save(self, path: Path) -> None:
        """Write ``pool.npz``; equal pools give equal bytes."""
        write_arrays(path, vars(self))

    @classmethod
    def load(cls, path: Path) -> Pool:
        """Read ``pool.npz``.

        Raises:
            InputError: The file is missing, broken, or its arrays do not fit together.
        """
        arrays = read_arrays(path, cls.__dataclass_fields__)
        pool = cls(**arrays)
        rows = [name for name in arrays if name not in ("embeddings", "unvoiced")]
        if pool.embeddings.ndim != 2 or any(arrays[name].shape != (len(pool),) for name in rows):
            raise InputError(f"{path}: its arrays do not have one row per utterance")
        if len(pool) == 0 or not all(np.isfinite(arrays[n]).all() for n in ("log_f0_mean", "log_f0_sd")):
            raise InputError(f"{path}: an empty pool or F0 statistics that are not finite")
        return pool


def build_pool(entries: Iterable[PoolEntry]) -> Pool:
    """Collect entries, their F0 statistics, and the clusters of their speakers.

    Raises:
        InputError: There is no entry.
    """
    rows = list(entries)
    if not rows:
        raise InputError("the pool split holds no utterance; prepare.pool_speakers decides its size")
    speakers = [row.speaker for row in rows]
    statistics = pitch_statistics([row.f0 for row in rows], speakers)
    embeddings = np.stack([row.embedding for row in rows]).astype(np.float32)
    names, means = speaker_means(embeddings, speakers)
    label = dict(zip(names, cluster_voices(means).tolist(), strict=True))
    return Pool(
        embeddings,
        np.array([row.utterance for row in rows]),
        np.array(speakers),
        np.array([row.sex for row in rows]),
        statistics.mean,
        statistics.sd,
        np.array([label[speaker] for speaker in speakers], dtype=np.int64),
        np.array(statistics.unvoiced, dtype=np.str_),
    )


def speaker_means(
    embeddings: NDArray[np.floating], speakers: Sequence[str]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the sorted speaker ids and the (S, E) unit-norm means of their (U, E) embeddings."""
    names = sorted(set(speakers))
    index = {name: i for i, name in enumerate(names)}
    sums = np.zeros((len(names), embeddings.shape[1]))
    np.add.at(sums, [index[speaker] for speaker in speakers], embeddings.astype(np.float64))
    return names, sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)


def nearest_voice_accuracy(pool: Pool) -> float | None:
    """Return how often an utterance is closest to its own speaker, in [0, 1].

    A check of the encoder on voices it was not trained on. An utterance is compared with the mean of
    every speaker, its own speaker's without itself; speakers with one utterance are not asked.

    Returns:
        The share of correct answers, None where no speaker has two utterances.
    """
    names = sorted(set(pool.speakers.tolist()))
    speaker_index = np.array([names.index(speaker) for speaker in pool.speakers.tolist()])
    rows = pool.embeddings.astype(np.float64)
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, speaker_index, rows)
    scores = rows @ (sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)).T
    others = sums[speaker_index] - rows
    index = np.arange(len(rows))
    scores[index, speaker_index] = (rows * others).sum(axis=1) / np.maximum(
        np.linalg.norm(others, axis=1), 1e-12
    )
    asked = np.bincount(speaker_index)[speaker_index] > 1
    return float((scores.argmax(axis=1) == speaker_index)[asked].mean()) if asked.any() else None


@dataclass(frozen=True)
class PitchStatistics:
    """Statistics per utterance.

    Attributes:
        mean: (U,) mean of ln F0, finite.
        sd: (U,) standard deviation of ln F0, finite.
        unvoiced: Sorted ids of speakers with no voiced frames (fewer than the minimum).
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    unvoiced: list[str]


def pitch_statistics(tracks: Sequence[NDArray[np.float32]], speakers: Sequence[str]) -> PitchStatistics:
    """Compute the statistics of F0 tracks.

    Args:
        tracks: One (K,) track in Hz per utterance, 0 where unvoiced.
        speakers: Speaker of each.
    """
    voiced = [np.log(track[track > 0].astype(np.float64)) for track in tracks]
    collected: dict[str, list[NDArray[np.float64]]] = {}
    for values, speaker in zip(voiced, speakers, strict=True):
        collected.setdefault(speaker, []).append(values)
    of_speaker: dict[str, tuple[float, float]] = {}
    unvoiced = []
    for speaker in sorted(collected):
        values = np.concatenate(collected[speaker])
        if len(values) < MINIMUM_VOICED:
            unvoiced.append(speaker)
            of_speaker[speaker] = (FALLBACK_MEAN, FALLBACK_SD)
        else:
            of_speaker[speaker] = (float(values.mean()), float(values.std()))
    pairs = [
        (float(values.mean()), float(values.std())) if len(values) >= MINIMUM_VOICED else of_speaker[speaker]
        for values, speaker in zip(voiced, speakers, strict=True)
    ]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return PitchStatistics(table[:, 0], table[:, 1], unvoiced)


def cluster_voices(voices: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cluster of each voice.

    Args:
        voices: (S, E) unit-norm embeddings, one per speaker.

    Returns:
        (S,) labels, numbered from 0 in order of first appearance; the same for the same input.

    Raises:
        VoxveilError: The messages do not settle at any damping.
    """
    if len(voices) < 3:
        return np.zeros(len(voices), dtype=np.int64)
    from sklearn.cluster import AffinityPropagation
    from sklearn.exceptions import ConvergenceWarning

    # Rounded, so that the last bit of a matrix product cannot move a label.
    cosines = np.round(voices @ voices.T, 6)
    for damping in _DAMPINGS:
        model = AffinityPropagation(
            damping=damping, max_iter=2000, convergence_iter=30, affinity="precomputed", random_state=0
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = model.fit_predict(cosines)
        if not any(issubclass(item.category, ConvergenceWarning) for item in caught) and labels.min() >= 0:
            return _in_order(labels)
    raise VoxveilError(
        f"affinity propagation over {len(voices)} pool speakers does not settle; "
        "train the encoder longer (train_speaker.steps) or change prepare.pool_speakers"
    )


def _in_order(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    number: dict[int, int] = {}
    return np.array([number.setdefault(int(label), len(number)) for label in labels], dtype=np.int64)
