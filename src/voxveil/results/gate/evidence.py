"""Measurements that the gate reads from ``summary.json``: privacy loss, attacks, word errors.

Also paired differences in leakage between candidate and reference on the same trials, of the score outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.privacy.invariants import UNPADDED
from voxveil.results.comparison.differences import NotPairedError, paired_intervals, read_scored
from voxveil.runtime.errors import InputError

__all__ = [
    "GATED",
    "Evidence",
    "Intervals",
    "Measured",
    "Promised",
    "losses_or_reason",
    "paired_losses",
    "read_evidence",
]

#: The gated metrics, higher = worse: name -> (for people, unit).
GATED: Mapping[str, tuple[str, str]] = {
    "identification_rate": ("identification rate", "points"),
    "linkability": ("linkability", ""),
    "d_ece": ("D_ECE", "bit"),
}

_WEAK = "attacker_not_converged"


@dataclass(frozen=True)
class Measured:
    """A number with its interval.

    Attributes:
        value: None where it is undefined or unbounded.
        interval: 95 % over speakers, None where there is none.
        note: Why there is no value.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    note: str = ""


@dataclass(frozen=True)
class Promised:
    """The privacy loss of one stream, or of a whole utterance.

    Attributes:
        epsilon: In nat; infinite where nothing is promised, and under zCDP.
        unit: ``utterance`` or ``vector``.
        delta: 0 for pure differential privacy.
        measure: ``pure`` or ``zcdp``.
        rho: Under zCDP, what it bounds.
        invariants: Neighbours are equal in them.
    """

    epsilon: float
    unit: str
    delta: float = 0.0
    measure: str = "pure"
    rho: float | None = None
    invariants: frozenset[str] = UNPADDED

    @property
    def size(self) -> float:
        """Epsilon, or rho: of promises of one measure and unit the larger is weaker."""
        return self.epsilon if self.rho is None else self.rho


@dataclass(frozen=True)
class Evidence:
    """All gated measurements of one system.

    Attributes:
        label: Name for people.
        promises: Loss of each stream, and of the longest tested ``utterance``.
        attacks: The gated metrics of each ``ATTACKER/SCENARIO``.
        errors: ``wer`` and ``per`` in %, as far as they were counted.
        weak: Why nothing may be concluded from an attack, by ``ATTACKER/SCENARIO``.
    """

    label: str
    promises: Mapping[str, Promised]
    attacks: Mapping[str, Mapping[str, Measured]]
    errors: Mapping[str, Measured]
    weak: Mapping[str, str] = field(default_factory=dict)


def read_evidence(summary: Mapping[str, Any], label: str = "") -> Evidence:
    """Read the ``summary.json`` of a system.

    Raises:
        InputError: It lacks what the gate needs (results of ``voxveil evaluate`` promise nothing).
    """
    name = label or str(summary.get("system", "?"))
    try:
        promise, utility = summary["promise"], summary["utility"]
        promises = {stream: _promised(loss) for stream, loss in promise["streams"].items()}
        promises["whole utterance"] = _promised(promise["utterance"])
        attacks = {_name(attack): _gated(attack["metrics"]) for attack in summary["attacks"]}
        errors = {"per": _measured(utility["per"])}
        if utility["wer"]:
            errors["wer"] = _measured(utility["wer"])
        weak = {
            _name(attack): str(warning["text"])
            for attack in summary["attacks"]
            for warning in attack["warnings"]
            if warning["code"] == _WEAK
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{name}: not the summary of a system with promise and utility ({error!r})"
        ) from None
    return Evidence(name, promises, attacks, errors, weak)


def _name(attack: Mapping[str, Any]) -> str:
    return f"{attack['attacker']}/{attack['scenario']}"


def _promised(loss: Mapping[str, Any]) -> Promised:
    given = loss["epsilon"] == "none"
    size = loss["epsilon_given_words"] if given else loss["epsilon"]
    epsilon = math.inf if size == "inf" else float(size)
    rho = loss.get("rho_given_words" if given else "rho")
    return Promised(
        epsilon,
        str(loss["unit"]),
        float(loss.get("delta", 0.0)),
        str(loss.get("measure", "pure" if rho is None else "zcdp")),
        None if rho is None else float(rho),
        frozenset(loss.get("invariants", UNPADDED)),
    )


def _gated(metrics: Mapping[str, Any]) -> dict[str, Measured]:
    unlinkability = _measured(metrics["unlinkability"])
    linkability = Measured(
        None if unlinkability.value is None else 1 - unlinkability.value,
        None if unlinkability.interval is None else _mirrored(unlinkability.interval),
        unlinkability.note,
    )
    return {
        "identification_rate": _measured(metrics["identification_rate"]),
        "linkability": linkability,
        "d_ece": _measured(metrics["zebra_expected"]),
    }


def _measured(entry: Mapping[str, Any]) -> Measured:
    value, bounds = entry["value"], entry.get("ci95")
    interval = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    finite = value is not None and math.isfinite(float(value))
    note = str(entry.get("note") or entry.get("reason") or "")
    return Measured(float(value) if finite else None, interval, "" if finite else note)


def _mirrored(interval: tuple[float, float]) -> tuple[float, float]:
    return 1 - interval[1], 1 - interval[0]


#: 95 % interval of the loss by metric, by ``ATTACKER/SCENARIO``.
Intervals = Mapping[str, Mapping[str, tuple[float, float]]]


def paired_losses(reference: Path, candidate: Path, attacks: Sequence[str], replicates: int) -> Intervals:
    """Return the interval of each loss (candidate minus reference, higher = worse) by a paired bootstrap.

    One draw of speakers serves both systems (:mod:`voxveil.results.comparison.differences`). A metric that is
    undefined in more than 1 in 20 draws has no interval.

    Args:
        reference: Score output of the reference.
        candidate: Score output of the candidate.
        attacks: ``ATTACKER/SCENARIO`` of each attack.
        replicates: Number of draws.

    Raises:
        NotPairedError: Scores are not there, or the trials are not the same.
        InputError: Scores are damaged.
    """
    found = {}
    for attack in attacks:
        try:
            sides = read_scored(reference / attack), read_scored(candidate / attack)
            bounds = paired_intervals(*sides, replicates)
        except NotPairedError as error:
            raise NotPairedError(f"{attack}: {error}") from None
        losses = {
            ours: bounds[theirs]
            for ours, theirs in (("identification_rate", "identification_rate"), ("d_ece", "zebra_expected"))
            if theirs in bounds
        }
        if "unlinkability" in bounds:
            low, high = bounds["unlinkability"]
            losses["linkability"] = (-high, -low)
        found[attack] = losses
    return found


def losses_or_reason(
    reference: Path | None, candidate: Path | None, attacks: Sequence[str], replicates: int
) -> Intervals | str:
    """Return :func:`paired_losses`, or one line with the reason why pairing is impossible."""
    if reference is None or candidate is None:
        return f"the scores of the {'reference' if reference is None else 'candidate'} are not at hand"
    try:
        return paired_losses(reference, candidate, attacks, replicates)
    except NotPairedError as error:
        return str(error)
