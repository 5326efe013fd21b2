"""The gate's decision ``promote`` or ``keep``, a pure function of the measurements, with reasons.

Against a *pinned* reference, not the last release, so that many small losses cannot add up: the upper end
of the paired 95 % interval of each loss must lie below its margin. Against the champion: no larger epsilon,
no smaller unit, no larger delta. Worst-case epsilon_max gates nothing: it is a maximum, and moves with the
number of trials. What cannot be told counts against the candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from voxveil.config.fields import listed
from voxveil.config.model import GateParams
from voxveil.privacy.invariants import condition_text, is_implied
from voxveil.results.gate.evidence import GATED, Evidence, Intervals, Measured, Promised

__all__ = ["Decision", "Finding", "decide", "gated_attacks"]

#: Units by what one epsilon covers.
_UNITS = ("vector", "utterance")
#: Epsilons are sums of floats; equal promises may differ in the last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """One check: measured value, limit, and whether it passed."""

    check: str
    passed: bool
    text: str


@dataclass(frozen=True)
class Decision:
    """The decision about a candidate with its checks.

    Attributes:
        promote: It may take the champion's place.
        findings: Every check that was made.
    """

    promote: bool
    findings: tuple[Finding, ...]

    @property
    def reason(self) -> str:
        """One line: the failed checks, or those that passed."""
        if self.promote:
            return "promoted: " + "; ".join(finding.text for finding in self.findings)
        return "kept: " + "; ".join(finding.text for finding in self.findings if not finding.passed)

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``decision.json``."""
        return {
            "format": 1,
            "promote": self.promote,
            "reason": self.reason,
            "findings": [asdict(finding) for finding in self.findings],
        }


def gated_attacks(candidate: Evidence, rules: GateParams) -> tuple[str, ...]:
    """Return the ``ATTACKER/SCENARIO`` whose metrics are gated."""
    scenarios = listed(rules.scenarios)
    return tuple(name for name in candidate.attacks if name.rpartition("/")[2] in scenarios)


def decide(
    candidate: Evidence,
    rules: GateParams,
    *,
    reference: Evidence | None = None,
    champion: Evidence | None = None,
    losses: Intervals | str = "",
    original: Evidence | None = None,
) -> Decision:
    """Return whether the candidate may become the champion.

    Args:
        candidate: What was measured of it.
        rules: Margins and bars.
        reference: The pinned reference, None where none is.
        champion: The system in use, None where there is none.
        losses: Intervals of candidate minus reference, or why there are none.
        original: Original speech under the same attacker, where it was measured.
    """
    attacks = gated_attacks(candidate, rules)
    findings = [*_conclusive(candidate, attacks, rules, original), *_defined(candidate, attacks)]
    if champion is None:
        findings += _bars(candidate, attacks, rules)
    else:
        findings += _promises(candidate, champion)
        findings.append(_errors(candidate, champion, rules, "champion"))
    if reference is not None:
        findings += _losses(attacks, losses, rules)
        findings.append(_errors(candidate, reference, rules, "reference"))
    elif champion is not None:
        text = "no reference is pinned, so nothing says how far releases have drifted"
        findings.append(Finding("reference", False, text))
    return Decision(all(finding.passed for finding in findings), tuple(findings))


def _conclusive(
    candidate: Evidence, attacks: Sequence[str], rules: GateParams, original: Evidence | None
) -> list[Finding]:
    if not attacks:
        text = f"none of its attacks is in a gated scenario ({rules.scenarios})"
        return [Finding("attacks", False, text)]
    weak = [f"{name}: {candidate.weak[name]}" for name in attacks if name in candidate.weak]
    if original is not None:
        found = {name: text for name, text in original.weak.items() if name in attacks}
        weak += [f"{name} on original speech: {text}" for name, text in found.items()]
    if weak:
        return [Finding("attacks", False, f"the attacker is too weak to conclude from ({'; '.join(weak)})")]
    return [Finding("attacks", True, f"attacked by {', '.join(attacks)}")]


def _defined(candidate: Evidence, attacks: Sequence[str]) -> list[Finding]:
    missing = [
        f"{_of(attack, name)} is undefined ({candidate.attacks[attack][name].note or 'no reason given'})"
        for attack in attacks
        for name in GATED
        if candidate.attacks[attack][name].value is None
    ]
    missing += [
        f"{_error_name(name)} are undefined ({measured.note or 'no reason given'})"
        for name, measured in candidate.errors.items()
        if measured.value is None
    ]
    return [Finding("defined", False, text) for text in missing]


def _bars(candidate: Evidence, attacks: Sequence[str], rules: GateParams) -> list[Finding]:
    found = []
    for attack in attacks:
        for name, (_, unit) in GATED.items():
            bar = float(getattr(rules, f"bar_{name}"))
            shown = "%" if unit == "points" else unit
            check = f"bar {name} {attack}"
            found.append(_bar(check, _of(attack, name), candidate.attacks[attack][name], bar, shown))
    name, measured = _spoken(candidate)
    found.append(_bar(f"bar {name}", _error_name(name), measured, rules.bar_errors, "%"))
    return found


def _bar(check: str, what: str, measured: Measured, bar: float, unit: str) -> Finding:
    limit = _text(bar, unit)
    if measured.value is None or measured.interval is None:
        text = f"no champion, and {what} has no interval to hold against the bar {limit}"
        return Finding(check, False, text)
    upper = measured.interval[1]
    word = "at most" if upper <= bar else "above"
    text = f"no champion: upper end of {what} {_text(upper, unit)}, {word} the bar {limit}"
    return Finding(check, upper <= bar, text)


def _promises(candidate: Evidence, champion: Evidence) -> list[Finding]:
    streams = {*candidate.promises, *champion.promises}
    found = []
    for stream in sorted(streams):
        ours, theirs = candidate.promises.get(stream), champion.promises.get(stream)
        if ours is None or theirs is None:
            text = f"{stream}: promised by {'the champion' if ours is None else 'the candidate'} alone"
            found.append(Finding(f"promise {stream}", False, text))
            continue
        worse = _larger(ours, theirs)
        text = f"{stream}: {_promise(ours)}, the champion's {_promise(theirs)}"
        found.append(Finding(f"promise {stream}", not worse, f"{text}{': ' + worse if worse else ''}"))
    return found


def _larger(ours: Promised, theirs: Promised) -> str:
    """Return the parts of a privacy loss that are weaker than the champion's, empty if none."""
    if ours.measure != theirs.measure:
        return f"the measures {ours.measure} and {theirs.measure} cannot be compared"
    if ours.unit not in _UNITS or theirs.unit not in _UNITS:
        return "the units cannot be compared"
    if not all(is_implied(value, theirs.invariants) for value in ours.invariants):
        return "it holds for fewer pairs of utterances"
    if _UNITS.index(ours.unit) < _UNITS.index(theirs.unit):
        return "the unit covers less"
    if ours.size > theirs.size * (1 + _ROUNDING):
        return "epsilon is larger" if ours.rho is None else "rho is larger"
    return "delta is larger" if ours.delta > theirs.delta else ""


def _losses(attacks: Sequence[str], losses: Intervals | str, rules: GateParams) -> list[Finding]:
    if isinstance(losses, str):
        text = f"it cannot be held against the reference: {losses or 'no scores were given'}"
        return [Finding("paired", False, text)]
    found = []
    for attack in attacks:
        for name, (_, unit) in GATED.items():
            margin = float(getattr(rules, f"margin_{name}"))
            check, what = f"loss {name} {attack}", f"loss in {_of(attack, name)}"
            bounds = losses.get(attack, {}).get(name)
            if bounds is None or not all(map(math.isfinite, bounds)):
                found.append(Finding(check, False, f"{what} has no paired interval"))
                continue
            passed = bounds[1] < margin
            word = "below" if passed else "not below"
            interval = f"[{bounds[0]:.4g}, {bounds[1]:.4g}]{' ' + unit if unit else ''}"
            text = (
                f"{what} against the reference {interval}: upper end {word} the margin {_text(margin, unit)}"
            )
            found.append(Finding(check, passed, text))
    return found


def _errors(candidate: Evidence, other: Evidence, rules: GateParams, who: str) -> Finding:
    check = f"errors against the {who}"
    # Words where both counted them; a candidate without words cannot stand for one with.
    name = "wer" if "wer" in other.errors else "per"
    ours, theirs = candidate.errors.get(name), other.errors.get(name)
    if ours is None or theirs is None or ours.value is None or theirs.value is None:
        return Finding(check, False, f"{_error_name(name)} of both are needed, and one is missing")
    rise = ours.value - theirs.value
    passed = rise <= rules.margin_errors
    word = "within" if passed else "beyond"
    text = (
        f"{_error_name(name)} {ours.value:.4g} %, the {who}'s {theirs.value:.4g} %: {word} the margin of"
        f" {rules.margin_errors:g} points"
    )
    return Finding(check, passed, text)


def _spoken(candidate: Evidence) -> tuple[str, Measured]:
    name = "wer" if "wer" in candidate.errors else "per"
    return name, candidate.errors.get(name, Measured(None))


def _of(attack: str, name: str) -> str:
    return f"{GATED[name][0]} ({attack})"


def _error_name(name: str) -> str:
    return {"wer": "word errors", "per": "phone errors"}[name]


def _promise(promised: Promised) -> str:
    delta = f", delta {promised.delta:g}" if promised.delta else ""
    size = f"epsilon {promised.epsilon:g}" if promised.rho is None else f"zCDP rho {promised.rho:g}"
    given = condition_text(promised.invariants)
    return f"{size} per {promised.unit}{delta}{f' {given}' if given else ''}"


def _text(value: float, unit: str) -> str:
    return f"{value:.4g}{' ' + unit if unit else ''}"
