"""Audit of a system's claimed epsilon against an attacker's scores.

For an enrolment e, any utterance u of its speaker and any utterance v of somebody else with the
same number of vectors K are neighbours, so P(score(e, u) >= t) is at most e^epsilon times
P(score(e, v) >= t), epsilon = epsilon1 + K epsilon2, over the noise. Trials are therefore matched
in triples (e, u, v) of equal K, each utterance at most once a side, so that the draws are
independent; averaged over the triples the ratio of hit and false-alarm probability stays below
e^epsilon. The threshold is chosen on one half of the enrolments and tested on the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.audit.bounds import ALPHA, choose_event, largest_bound, ratio_bound

__all__ = ["VACUOUS", "AttackFinding", "Trial", "audit_attack"]

#: A claim above this many nat excludes nothing that any attacker could show.
VACUOUS = 10.0


@dataclass(frozen=True)
class Trial:
    """One verification trial and its score."""

    enrolment: str
    utterance: str
    is_target: bool
    score: float


@dataclass(frozen=True)
class AttackFinding:
    """Result of an attack audit of a claim.

    Attributes:
        epsilon: The claim: the largest utterance epsilon among the tested, in nat.
        triples: Tested (enrolment, target, nontarget) triples of equal K.
        bound: Lower confidence bound of the largest |log(P_hit / P_fa)| in nat; None without triples.
        limit: Largest bound that so many triples can give.
        verdict: ``violation``, ``consistent``, ``vacuous`` or ``not auditable``.
    """

    epsilon: float
    triples: int
    bound: float | None
    limit: float
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        bound = self.bound if self.bound is not None and math.isfinite(self.bound) else None
        epsilon = "inf" if math.isinf(self.epsilon) else self.epsilon
        return {**self.__dict__, "epsilon": epsilon, "bound": bound}

    def text(self) -> str:
        """Return one line."""
        claim = "no bound" if math.isinf(self.epsilon) else f"{self.epsilon:.6g} nat"
        if self.bound is None:
            return f"claim {claim}: {self.verdict}; no trials of equal frame count to compare"
        return (
            f"claim {claim}: {self.verdict}; attacker shows at least {max(self.bound, 0.0):.3f} nat on"
            f" {self.triples} matched trials, which could show {self.limit:.2f} at most"
        )


def audit_attack(
    trials: Sequence[Trial],
    vectors: Mapping[str, int],
    epsilons: Mapping[str, float],
    *,
    alpha: float = ALPHA,
) -> AttackFinding:
    """Compare an attacker's trials with the claimed epsilon.

    Args:
        trials: In any order; scores rise with similarity.
        vectors: K of each utterance.
        epsilons: Utterance epsilon of each utterance, in nat.
        alpha: Chance of accusing a right system.
    """
    enrolments = sorted({trial.enrolment for trial in trials})
    halves = (set(enrolments[::2]), set(enrolments[1::2]))
    used: set[str] = set()
    chosen = []
    for half in halves:
        triples = _matched([trial for trial in trials if trial.enrolment in half], vectors, used)
        used |= {trial.utterance for pair in triples for trial in pair}
        chosen.append(triples)
    choosing, testing = chosen
    tested = [trial.utterance for pair in testing for trial in pair] or [t.utterance for t in trials]
    epsilon = max((epsilons[utterance] for utterance in tested), default=math.inf)
    if not choosing or not testing:
        return AttackFinding(epsilon, 0, None, 0.0, "vacuous" if epsilon > VACUOUS else "not auditable")
    event = choose_event(*_scores(choosing), alpha)
    bound = ratio_bound(*_scores(testing), event, alpha)
    limit = largest_bound(len(testing), alpha)
    if bound > epsilon:
        verdict = "violation"
    elif epsilon > VACUOUS:
        verdict = "vacuous"
    else:
        verdict = "consistent" if epsilon < limit else "not auditable"
    return AttackFinding(epsilon, len(testing), bound, limit, verdict)


def _matched(
    trials: Sequence[Trial], vectors: Mapping[str, int], taken: set[str]
) -> list[tuple[Trial, Trial]]:
    """Pair each target trial with a nontarget trial of the same enrolment and K, greedily, in order."""
    waiting: dict[tuple[str, int], list[Trial]] = {}
    free = [trial for trial in trials if trial.utterance not in taken]
    for trial in sorted(free, key=lambda t: (t.enrolment, t.utterance), reverse=True):
        if not trial.is_target:
            waiting.setdefault((trial.enrolment, vectors[trial.utterance]), []).append(trial)
    hits: set[str] = set()
    alarms: set[str] = set()
    pairs = []
    for trial in sorted((t for t in free if t.is_target), key=lambda t: (t.enrolment, t.utterance)):
        others = waiting.get((trial.enrolment, vectors[trial.utterance]), [])
        while others and others[-1].utterance in alarms:
            others.pop()
        if trial.utterance in hits or not others:
            continue
        other = others.pop()
        hits.add(trial.utterance)
        alarms.add(other.utterance)
        pairs.append((trial, other))
    return pairs


def _scores(pairs: Sequence[tuple[Trial, Trial]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return (
        np.array([target.score for target, _ in pairs], np.float64),
        np.array([other.score for _, other in pairs], np.float64),
    )
