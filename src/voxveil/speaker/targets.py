"""The choice of a target voice: the average of random members of a dense cluster.

The choice never looks at the utterance it is for; its arguments are the public pool and a random
generator. So the target carries nothing about the source speaker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.errors import ParamsError
from voxveil.speaker.pool import Pool

__all__ = ["Target", "dense_clusters", "select_target"]


@dataclass(frozen=True)
class Target:
    """A voice to speak with.

    Attributes:
        embedding: (E,) float32, unit-norm.
        log_f0_mean: Mean of ln F0 (Hz) over voiced frames.
        log_f0_sd: Standard deviation of the same.
        cluster: The cluster its members come from.
    """

    embedding: NDArray[np.float32]
    log_f0_mean: float
    log_f0_sd: float
    cluster: int


def dense_clusters(pool: Pool) -> list[int]:
    """Return the clusters with at least the mean number of speakers; never empty."""
    speakers_of: dict[int, set[str]] = {}
    for cluster, speaker in zip(pool.clusters.tolist(), pool.speakers.tolist(), strict=True):
        speakers_of.setdefault(cluster, set()).add(speaker)
    mean = sum(len(speakers) for speakers in speakers_of.values()) / len(speakers_of)
    return sorted(cluster for cluster, speakers in speakers_of.items() if len(speakers) >= mean)


def select_target(pool: Pool, rng: np.random.Generator, members: int) -> Target:
    """Draw a target.

    Args:
        pool: The public pool.
        rng: Where the choice comes from: a seeded stream in stages, the operating system's CSPRNG in
            ``voxveil anonymize``.
        members: Utterances averaged; all of the cluster's where it has fewer.

    Raises:
        ParamsError: ``members`` is not positive.
    """
    if members < 1:
        raise ParamsError(f"train_speaker.target_members: got {members}, must be at least 1")
    dense = dense_clusters(pool)
    cluster = dense[int(rng.integers(len(dense)))]
    rows = np.flatnonzero(pool.clusters == cluster)
    chosen = rng.choice(rows, min(members, len(rows)), replace=False)
    mean = pool.embeddings[chosen].astype(np.float64).mean(axis=0)
    unit = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return Target(
        unit.astype(np.float32),
        float(pool.log_f0_mean[chosen].mean()),
        float(pool.log_f0_sd[chosen].mean()),
        cluster,
    )
