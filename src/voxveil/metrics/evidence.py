"""Warnings about metrics that would mislead, each with the numbers behind it.

Each rule looks at finished metrics; none changes a value. Texts hold figures, never names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, ndtr, ndtri, xlogy

from voxveil.metrics.data import CountTable, UndefinedMetricError
from voxveil.metrics.eps_gauss import fit_gauss
from voxveil.metrics.pav import PavBins, smooth

__all__ = ["WARNING_CODES", "Findings", "binormal_identification", "find_warnings"]

WARNING_CODES = {
    "eer_hides_evidence": "the EER is near 50 % while likelihood ratios are large",
    "pav_ceiling": "the PAV worst case is set by the size of a one-class bin, not by the scores",
    "estimators_disagree": "worst-case estimators differ by more than a factor 2",
    "scores_reversed": "scores may be reversed (distances given as similarities)",
    "too_few_targets": "too few target trials or speakers for a claim",
    "pooled_attack_stronger": "the rank attack is far stronger than the EER says",
    "attacker_not_converged": "the attacker is too weak for its result to pass as privacy",
    "utterances_without_result": "an attacker found nothing to compare in some utterances",
}

_NEAR_50 = 5.0  # percentage points
_LARGE_LLR = 1.0  # nat: posterior odds move by a factor e
_RULE_OF_30 = 60  # targets: even at chance fewer than 30 errors, so +-30 % is not reached (Doddington)
_FEW_SPEAKERS = 10


@dataclass(frozen=True)
class Findings:
    """Values that the warning rules test.

    Attributes:
        metrics: The ``metrics`` object of the JSON contract.
        table: Count table of the trials.
        bins: Its unsmoothed PAV bins.
        n_references: N of the rank attack, or None.
        n_speakers: Speakers of the trials, or None.
    """

    metrics: Mapping[str, Mapping[str, Any]]
    table: CountTable
    bins: PavBins
    n_references: int | None
    n_speakers: int | None

    def value(self, name: str) -> float | None:
        """Return a metric's value."""
        found = self.metrics[name]["value"]
        return None if found is None else float(found)

    def bound(self, name: str, key: str, side: int) -> float | None:
        """Return one bound of ``ci95`` or ``null95``."""
        found = self.metrics[name][key]
        return None if found is None else float(found[side])


def find_warnings(findings: Findings) -> list[dict[str, str]]:
    """Return the warnings that apply to one attack, in the order of :data:`WARNING_CODES`.

    What compares attacks with each other is in :mod:`voxveil.metrics.attacked`.
    """
    rules = {
        "eer_hides_evidence": _eer_hides_evidence,
        "pav_ceiling": _pav_ceiling,
        "estimators_disagree": _estimators_disagree,
        "scores_reversed": _scores_reversed,
        "too_few_targets": _too_few_targets,
        "pooled_attack_stronger": _pooled_stronger,
    }
    found = []
    for code, rule in rules.items():
        text = rule(findings)
        if text is not None:
            found.append({"code": code, "text": text})
    return found


def _eer_hides_evidence(f: Findings) -> str | None:
    eer = f.value("eer")
    low, high = f.bound("eer", "null95", 0), f.bound("eer", "null95", 1)
    if eer is None:
        return None
    as_chance = low is not None and high is not None and low <= eer <= high
    if abs(eer - 50) > _NEAR_50 and not as_chance:
        return None
    significant = _evidence_is_significant(f)
    large = []
    for name in ("eps_max_pav", "eps_max_gauss", "eps_max_t"):
        value, chance = f.value(name), f.bound(name, "null95", 1)
        if value is None or value < _LARGE_LLR:
            continue
        # Beyond the null alone would fire on 1 clean set in 40; the likelihood ratio alone takes trials
        # for independent. Where both exist, both must agree.
        if not significant or (chance is not None and value <= chance):
            continue
        shown = "" if chance is None else f" (chance reads up to {chance:.2f})"
        large.append(f"{name} {value:.2f} nat{shown}")
    if not large:
        return None
    return f"EER is {eer:.1f} %, near chance, yet single scores are strong evidence: {', '.join(large)}"


def _evidence_is_significant(f: Findings) -> bool:
    """Return whether scores and labels depend on each other beyond chance, with trials as independent."""
    t, n = f.bins.target, f.bins.nontarget
    total = t + n
    whole = f.table.n_target + f.table.n_nontarget
    within = float((xlogy(t, t / total) + xlogy(n, n / total)).sum())
    without = xlogy(f.table.n_target, f.table.n_target / whole) + xlogy(
        f.table.n_nontarget, f.table.n_nontarget / whole
    )
    harmonic = float(digamma(whole + 1) - digamma(1))
    # Isotonic regression against a constant: chi-bar-square of mean H_n - 1, variance below 3 H_n.
    if 2 * (within - float(without)) > harmonic - 1 + 4 * np.sqrt(3 * harmonic):
        return True
    try:
        pair = fit_gauss(f.table)
    except UndefinedMetricError:
        return False
    values, counts = f.table.values, f.table.target + f.table.nontarget
    mean = float(counts @ values / whole)
    pooled = float(np.sqrt(counts @ (values - mean) ** 2 / whole))
    ratio = 2 * whole * np.log(pooled)
    ratio -= 2 * f.table.n_target * np.log(pair.sd_target) + 2 * f.table.n_nontarget * np.log(
        pair.sd_nontarget
    )
    return bool(ratio > 30)  # chi-square of 2 degrees of freedom: 3e-7


def _pav_ceiling(f: Findings) -> str | None:
    smoothed = smooth(f.bins)
    at = int(np.argmax(np.abs(smoothed.llr)))
    for end, name, other in ((0, "target", "lowest"), (-1, "nontarget", "highest")):
        absent = f.bins.target[end] if name == "target" else f.bins.nontarget[end]
        size = int(f.bins.target[end] + f.bins.nontarget[end])
        pooled = int(smoothed.target[end] + smoothed.nontarget[end])
        if at == range(smoothed.llr.size)[end] and absent == 0 and pooled == size + 2:
            present = "nontarget" if name == "target" else "target"
            return (
                f"zebra_worst_case {abs(smoothed.llr[at]):.2f} nat is set by the size of the {other} PAV "
                f"bin: M = {size} {present} trials and no {name}; more trials would raise it"
            )
    return None


def _estimators_disagree(f: Findings) -> str | None:
    names = ("eps_max_pav", "eps_max_gauss", "eps_max_t", "eps_max_rank")
    values = {name: value for name in names if (value := f.value(name)) is not None}
    if len(values) < 2:
        return None
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    if values[high] < 2 * values[low] or values[high] - values[low] < _LARGE_LLR:
        return None
    chance = f.bound(high, "null95", 1)
    if chance is not None and values[high] <= chance:
        return None
    shown = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    return f"worst-case estimators differ by more than a factor 2 ({shown} nat): quote none of them alone"


def _scores_reversed(f: Findings) -> str | None:
    eer, chance = f.value("eer"), f.bound("eer", "null95", 1)
    if eer is None or eer <= 50:
        return None
    t, n = f.table.target.astype(np.float64), f.table.nontarget.astype(np.float64)
    higher = np.cumsum(t[::-1])[::-1] - t
    n_t, n_n = f.table.n_target, f.table.n_nontarget
    auc = float(n @ (higher + t / 2)) / (n_t * n_n)
    z = (auc - 0.5) / np.sqrt((n_t + n_n + 1) / (12.0 * n_t * n_n))
    beyond = eer > chance if chance is not None else (eer >= 60 or z < -3)
    if not beyond or auc >= 0.5:
        return None
    return (
        f"scores may be reversed: EER is {eer:.1f} % and a target scores above a nontarget in only "
        f"{100 * auc:.1f} % of pairs; negate them if they are distances (with few speakers an attack"
        " that finds nothing can read so too); nothing was folded"
    )


def _too_few_targets(f: Findings) -> str | None:
    n_t, speakers = f.table.n_target, f.n_speakers
    few_speakers = speakers is not None and speakers < _FEW_SPEAKERS
    if n_t >= _RULE_OF_30 and not few_speakers:
        return None
    parts = [
        f"{n_t} target trials: at an EER of 50 % its standard error alone is {50 / np.sqrt(n_t):.1f} points"
    ]
    if speakers is not None:
        parts.append(f"{speakers} speakers")
    chance = f.bound("eps_max_pav", "null95", 1)
    if chance is not None:
        parts.append(f"eps_max_pav reads up to {chance:.2f} nat when nothing leaks")
    return "too few for a claim of privacy: " + "; ".join(parts)


def _pooled_stronger(f: Findings) -> str | None:
    eer, rate = f.value("eer"), f.value("identification_rate")
    if eer is None or rate is None or f.n_references is None:
        return None
    lowest = f.bound("identification_rate", "ci95", 0)
    expected = 100 * binormal_identification(eer / 100, f.n_references)
    sure = rate if lowest is None else lowest
    if sure < 2 * expected or sure - expected < 10:
        return None
    return (
        f"the rank attack identifies {rate:.1f} % of inputs among {f.n_references}, where an EER of "
        f"{eer:.1f} % lets expect {expected:.1f} %: enrolment and trial may be anonymized differently, "
        "so the EER understates the attacker"
    )


def binormal_identification(eer: float, n_references: int) -> float:
    """Return gamma_1 among N when scores are two Gaussians of equal variance with this EER.

    Args:
        eer: Fraction in [0, 1].
        n_references: N.
    """
    distance = -2 * float(ndtri(min(max(eer, 1e-9), 1 - 1e-9)))
    x = np.linspace(distance - 9, distance + 9, 4001)
    density = np.exp(-0.5 * (x - distance) ** 2) / np.sqrt(2 * np.pi)
    return float(np.sum(density * ndtr(x) ** (n_references - 1)) * (x[1] - x[0]))
