"""Selection of a target voice: the average of random members of a dense cluster.

The choice never looks at the utterance it is for; its arguments are the public pool and a random
generator. So the target carries nothing about the source speaker.

Other rules are there for comparison (:class:`TargetRule`). They look at the speaker, so the voice that is
heard tells something that no noise covers, and a system that uses one has epsilon = infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.features.speaker.pool import Pool, speaker_means
from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["Source", "Target", "TargetRule", "dense_clusters", "select_target"]

#: Of VoicePrivacy's baseline B1: so many speakers farthest from the source, of whom half are averaged.
FARTHEST = 200


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


@dataclass(frozen=True)
class TargetRule:
    """A rule for the selection of a target voice.

    Attributes:
        choice: ``dense``: members of a dense cluster. ``farthest``: as VoicePrivacy's B1, from the speakers
            whose voices are least like the source.
        level: ``utterance``: drawn for each. ``speaker``: one for all utterances of a speaker.
        sex: ``any``, or of pool members: the ``same`` as the source's, or the other (``cross``).
        sex_public: The speakers' sex is declared public, so that it may be used.
    """

    choice: str = "dense"
    level: str = "utterance"
    sex: str = "any"
    sex_public: bool = False

    @property
    def tells(self) -> str:
        """Information about the source that the target reveals; empty for a rule that ignores it."""
        revealed = []
        if self.choice == "farthest":
            revealed.append("the source's voice")
        if self.level == "speaker":
            revealed.append("which utterances share a speaker")
        if self.sex != "any" and not self.sex_public:
            revealed.append("the source's sex")
        return " and ".join(revealed)


@dataclass(frozen=True)
class Source:
    """Facts of the source that a target rule may use.

    Attributes:
        sex: ``F``, ``M``, or empty where it is not known.
        voice: (E,) unit-norm embedding of the source; None where the rule does not ask for it.
    """

    sex: str = ""
    voice: NDArray[np.float32] | None = None


def dense_clusters(pool: Pool, rows: NDArray[np.int64] | None = None) -> list[int]:
    """Return the clusters with at least the mean number of speakers; never empty.

    Args:
        pool: The public pool.
        rows: Its utterances that count; all unless told.
    """
    counted = np.arange(len(pool)) if rows is None else rows
    speakers_of: dict[int, set[str]] = {}
    for cluster, speaker in zip(
        pool.clusters[counted].tolist(), pool.speakers[counted].tolist(), strict=True
    ):
        speakers_of.setdefault(cluster, set()).add(speaker)
    mean = sum(len(speakers) for speakers in speakers_of.values()) / len(speakers_of)
    return sorted(cluster for cluster, speakers in speakers_of.items() if len(speakers) >= mean)


def select_target(
    pool: Pool,
    rng: np.random.Generator,
    members: int,
    rule: TargetRule = TargetRule(),
    source: Source = Source(),
) -> Target:
    """Draw a target.

    Args:
        pool: The public pool.
        rng: Where the choice comes from: a seeded stream in stages, the operating system's CSPRNG in
            ``voxveil anonymize``.
        members: Utterances averaged; all of the cluster's where it has fewer. Not of ``farthest``.
        rule: How to choose.
        source: What the rule looks at; nothing for the default rule.

    Raises:
        ParamsError: ``members`` is not positive.
        InputError: The rule asks for a sex or voice that is not known, or no pool speaker fits.
    """
    if members < 1:
        raise ParamsError(f"train_speaker.target_members: got {members}, must be at least 1")
    allowed = _allowed(pool, rule, source)
    if rule.choice == "farthest":
        chosen, cluster = _far(pool, rng, allowed, source), -1
    else:
        dense = dense_clusters(pool, allowed)
        cluster = dense[int(rng.integers(len(dense)))]
        rows = allowed[pool.clusters[allowed] == cluster]
        chosen = rng.choice(rows, min(members, len(rows)), replace=False)
    mean = pool.embeddings[chosen].astype(np.float64).mean(axis=0)
    unit = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return Target(
        unit.astype(np.float32),
        float(pool.log_f0_mean[chosen].mean()),
        float(pool.log_f0_sd[chosen].mean()),
        cluster,
    )


def _allowed(pool: Pool, rule: TargetRule, source: Source) -> NDArray[np.int64]:
    if rule.sex == "any":
        return np.arange(len(pool))
    if source.sex not in ("F", "M"):
        raise InputError(f"target of {rule.sex} sex: the speaker's sex is not known")
    rows = np.flatnonzero((pool.sexes == source.sex) == (rule.sex == "same"))
    if not len(rows):
        raise InputError(f"target of {rule.sex} sex: the pool has none for a source of {source.sex}")
    return rows


def _far(
    pool: Pool, rng: np.random.Generator, allowed: NDArray[np.int64], source: Source
) -> NDArray[np.int64]:
    """Return the utterances of a random half of the speakers farthest from the source by cosine.

    VoicePrivacy takes 200 of about 1,000 and averages 100; of a pool of fewer than 400, half are far.
    """
    if source.voice is None:
        raise InputError("target farthest from the source: its voice was not measured")
    names, means = speaker_means(pool.embeddings[allowed], pool.speakers[allowed].tolist())
    far = np.argsort(means @ source.voice.astype(np.float64), kind="stable")
    far = far[: max(1, min(FARTHEST, len(names) // 2))]
    drawn = {names[i] for i in rng.choice(far, max(1, len(far) // 2), replace=False)}
    return np.array([row for row in allowed if pool.speakers[row] in drawn], dtype=np.int64)
