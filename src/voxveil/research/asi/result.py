"""Result of a speaker identification attack, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.audit.bounds import clopper_pearson

__all__ = ["AsiResult", "clustered_interval"]

_SIDE = 0.025


@dataclass(frozen=True)
class AsiResult:
    """Correct identifications of a closed-set attack on S speakers.

    Attributes:
        speaker_hits: (S,) test trials of each speaker that named the speaker.
        speaker_trials: (S,) test trials of each speaker, at least 1.
        steps: Training steps of the weights that were tested.
        curve: Points of loss and of the validation figures over the steps.
        draws: Attacks pooled in it, each on features drawn anew.
        hits_by_attacker: Hits of each attacker; those above are of the one that has most.
    """

    speaker_hits: NDArray[np.int64]
    speaker_trials: NDArray[np.int64]
    steps: int
    curve: list[dict[str, float]] = field(default_factory=list)
    draws: int = 1
    hits_by_attacker: Mapping[str, int] = field(default_factory=dict)

    @property
    def speakers(self) -> int:
        """Number of speakers S."""
        return len(self.speaker_trials)

    @property
    def hits(self) -> int:
        """Test trials that named the right speaker."""
        return int(self.speaker_hits.sum())

    @property
    def trials(self) -> int:
        """Test trials."""
        return int(self.speaker_trials.sum())

    @property
    def accuracy(self) -> float:
        """Share of the test trials that named the right speaker, in [0, 1]; P_ASI is 1 minus it."""
        return self.hits / self.trials

    @property
    def chance(self) -> float:
        """Accuracy of a guess, 1/S."""
        return 1.0 / self.speakers

    @property
    def ci95(self) -> tuple[float, float]:
        """95 % interval of the accuracy; see :func:`clustered_interval`."""
        return clustered_interval(self.speaker_hits, self.speaker_trials)

    def to_json(self) -> dict[str, Any]:
        """Return the figures, without names of speakers."""
        low, high = self.ci95
        return {
            "accuracy": self.accuracy,
            "chance": self.chance,
            "ci95": [low, high],
            "draws": self.draws,
            "hits": self.hits,
            "hits_by_attacker": dict(self.hits_by_attacker),
            "p_asi": 1.0 - self.accuracy,
            "p_asi_ci95": [1.0 - high, 1.0 - low],
            "speakers": self.speakers,
            "steps": self.steps,
            "trials": self.trials,
        }


def clustered_interval(hits: NDArray[np.int64], trials: NDArray[np.int64]) -> tuple[float, float]:
    """Return a 95 % interval of a share whose trials come in clusters (Korn and Graubard 1998).

    Clopper-Pearson at the effective number of trials: the trials divided by the variance that they have
    as clusters over the variance that they would have if independent (never below 1), with fewer degrees
    of freedom for fewer clusters. With one trial a cluster it is Clopper-Pearson itself, exact. Where
    nothing or everything is a hit the clusters tell nothing of that ratio, and each counts once.

    Args:
        hits: (S,) hits of each cluster (speaker).
        trials: (S,) trials of each, at least 1; S at least 2.
    """
    from scipy.special import stdtrit

    clusters, n, k = len(trials), int(trials.sum()), int(hits.sum())
    share = k / n
    if 0 < k < n:
        spread = clusters / (clusters - 1) * float(((hits - share * trials) ** 2).sum()) / n**2
        design = max(1.0, spread * (n - 1) / (share * (1.0 - share)))
    else:
        design = n / clusters
    fewer = float(stdtrit(n - 1, 1 - _SIDE) / stdtrit(clusters - 1, 1 - _SIDE)) ** 2
    effective = n / design * fewer
    low, high = clopper_pearson(share * effective, effective, _SIDE)
    return float(low), float(high)
