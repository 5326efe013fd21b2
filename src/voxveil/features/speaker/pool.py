"""The public pool of target voices: their embeddings and F0 statistics.

Everything in it comes from public speech. Reading it needs neither torch nor scikit-learn, so a
bundle carries the pool and no speaker encoder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.features.speaker.pitch_statistics import pitch_statistics
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError

__all__ = ["Pool", "PoolEntry", "build_pool", "nearest_voice_accuracy", "speaker_means"]


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
        log_f0_mean: (U,) mean of the natural log of F0 in Hz over voiced frames; see
            :mod:`voxveil.features.speaker.pitch_statistics` for utterances with too few.
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
    from voxveil.features.speaker.clusters import cluster_voices

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
