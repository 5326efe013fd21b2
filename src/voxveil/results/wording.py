"""Number and privacy-loss formatting shared by terminal, page and MLflow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from voxveil.metrics.catalogue import undefined_text
from voxveil.results.report.results import Attack, Summary

__all__ = [
    "EER_NOTE",
    "INTERVAL_NOTE",
    "NULL_NOTE",
    "SYNTHETIC_NOTE",
    "any_concentrated",
    "bounds_text",
    "conditions",
    "concentrated",
    "concentrated_text",
    "epsilon_text",
    "epsilon_value",
    "loss_text",
    "metric_text",
    "null_envelope",
    "number",
    "plain_promise",
    "pure_text",
    "total_text",
    "value_text",
    "who_attacks",
]

EER_NOTE = (
    "An EER of 50 % is not perfect privacy: scores of equal mean and unequal spread have it and still"
    " give single utterances away. Read it beside the worst case and the identification rate."
)
NULL_NOTE = (
    "'If nothing leaks' is what 95 % of random relabellings read on these same trials, the widest range"
    " over the systems shown: even a perfect system does not score 0. A value inside that range does not"
    " prove privacy by itself; each system's own range stands in its evaluate/SYSTEM/*.json."
)
INTERVAL_NOTE = "Square brackets are 95 % intervals over speakers; a maximum has a range there instead."
SYNTHETIC_NOTE = (
    "The speech, and every model trained on it, is synthetic (espeak-ng). The numbers show that the"
    " chain works; they say nothing about real voices."
)

#: Everybody alive, for saying how little a huge epsilon excludes.
_PEOPLE = 8e9
_VACUOUS = (
    f"That exceeds ln of the number of people alive ({math.log(_PEOPLE):.0f}): as a promise about who spoke"
    " it is vacuous, and only the attacks below say how private it is."
)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits, never in scientific notation below a million."""
    if value is None:
        return "undefined"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}" if magnitude > -5 else f"{value:.1e}"


def epsilon_value(value: float | str) -> float:
    """Return an epsilon of a JSON file as a number; ``"inf"`` is infinite."""
    return math.inf if value == "inf" else float(value)


def epsilon_text(value: float | str) -> str:
    """Return an epsilon for a table: ``inf`` is the sign for infinity."""
    epsilon = epsilon_value(value)
    if math.isinf(epsilon):
        return "∞"
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:g}"


def concentrated(loss: Mapping[str, Any] | None) -> bool:
    """Return whether a loss is under zCDP: it has a rho, and no pure epsilon holds."""
    return loss is not None and loss.get("measure") == "zcdp"


def any_concentrated(summaries: Sequence[Summary]) -> bool:
    """Return whether an utterance of any system is under zCDP."""
    return any(concentrated(summary["promise"]["utterance"]) for summary in summaries)


def pure_text(loss: Mapping[str, Any]) -> str:
    """Return a pure epsilon for a table; a loss under zCDP has none, and has its own column."""
    return "none (zCDP)" if concentrated(loss) else epsilon_text(loss["epsilon"])


def concentrated_text(utterance: Mapping[str, Any]) -> str:
    """Return the column of an utterance under zCDP, e.g. ``12.3 at δ = 1e-06 (ρ = 1.5)``; a dash without."""
    if not concentrated(utterance):
        return "-"
    epsilon = number(utterance["epsilon_delta"])
    return f"{epsilon} at δ = {utterance['delta']:g} (ρ = {number(utterance['rho'])})"


def loss_text(loss: Mapping[str, Any] | None) -> str:
    """Return a stream's loss with its qualifying parameters."""
    if loss is None:
        return "not released"
    if loss["epsilon"] == "inf" and not concentrated(loss):
        return f"∞ ({loss['mechanism']}, no noise)"
    low, high = loss["sensitivity"]
    sensitivity = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
    size, norm = epsilon_text(loss["epsilon"]), "L1"
    if concentrated(loss):
        size, norm = f"no ε; zCDP ρ = {loss['rho']:g}", "L2"
    return f"{size} per {loss['unit']} ({loss['mechanism']}, {norm} sensitivity {sensitivity})"


def metric_text(entry: Mapping[str, Any], digits: int = 3) -> str:
    """Return a metric's value and interval, e.g. ``42.1 [38.0, 47.2]``; undefined stays undefined."""
    shown = None if entry["value"] is None else entry.get("ci95")
    return f"{value_text(entry, digits)} {bounds_text(shown, digits)}".rstrip()


def value_text(entry: Mapping[str, Any], digits: int = 3) -> str:
    """Return a metric's value without its interval."""
    if entry["value"] is not None:
        return number(entry["value"], digits)
    return undefined_text(entry.get("note") or "")


def bounds_text(bounds: Sequence[float] | None, digits: int = 3) -> str:
    """Return an interval in square brackets, empty where there is none."""
    return f"[{number(bounds[0], digits)}, {number(bounds[1], digits)}]" if bounds else ""


def null_envelope(attacks: Sequence[Attack], name: str) -> list[float] | None:
    """Return the smallest range that holds every attack's ``null95`` of a metric."""
    found = [a["metrics"][name]["null95"] for a in attacks if a["metrics"][name]["null95"]]
    return [min(low for low, _ in found), max(high for _, high in found)] if found else None


def who_attacks(attack: Attack) -> str:
    """Return attacker and scenario, e.g. ``ecapa, semi-informed``."""
    return f"{attack['attacker']}, {attack['scenario'].replace('_', '-')}"


def conditions(attack: Attack) -> str:
    """Return the conditions of an attack: attacker, scenario, state of enrolment and trial speech."""
    return f"{who_attacks(attack)}; enrolment {attack['enrolment']}, trials {attack['trial']}"


def total_text(summary: Summary) -> str:
    """Return epsilon of an utterance, or a note that a system is for comparison only."""
    total = pure_text(summary["promise"]["utterance"])
    return f"{total} (no guarantee)" if comparison_only(summary) else total


def comparison_only(summary: Summary) -> bool:
    """Return whether a system can promise nothing by its construction, other than original speech."""
    return summary["kind"] in ("mcadams", "copy_synthesis") or "target" in summary["promise"]["streams"]


def plain_promise(summary: Summary) -> str:
    """Return a system's privacy guarantee as a sentence."""
    promise = summary["promise"]
    epsilon = epsilon_value(promise["utterance"]["epsilon"])
    open_streams = [
        name
        for name, loss in promise["streams"].items()
        if loss["epsilon"] == "inf" and not concentrated(loss)
    ]
    if summary["kind"] == "original":
        return "Original speech, passed through: nothing is promised."
    if summary["kind"] == "mcadams":
        return "No guarantee: signal processing (McAdams coefficient) without noise (ε = ∞)."
    if summary["kind"] == "copy_synthesis":
        return "No guarantee: spoken again from its own spectrum and pitch, to show what that costs (ε = ∞)."
    if "target" in open_streams:
        return f"No guarantee, for comparison only: {promise['streams']['target']['note']} (ε = ∞)."
    if open_streams:
        kept = [name for name in promise["streams"] if name not in open_streams]
        also = f" Noise on {' and '.join(kept)} alone bounds nothing about the whole." if kept else ""
        verb = "pass" if len(open_streams) > 1 else "passes"
        return f"No promise: {' and '.join(open_streams)} {verb} without noise (ε = ∞).{also}"
    if concentrated(promise["utterance"]):
        return _concentrated_promise(promise["utterance"])
    references = summary["attacks"][0]["references"]
    text = (
        f"Whoever sees a released utterance can shift the odds between any two utterances of equal length"
        f" by a factor of at most exp({epsilon_text(epsilon)})."
    )
    if epsilon > math.log(_PEOPLE):
        return f"{text} {_VACUOUS}"
    if references and epsilon > math.log(references):
        return (
            f"{text} That exceeds ln N = {math.log(references):.2f} for the N = {references} speakers here:"
            " against so few candidates it excludes nothing."
        )
    return f"{text} That is a bound on who spoke, whatever the attacker knows."


def _concentrated_promise(utterance: Mapping[str, Any]) -> str:
    epsilon = utterance["epsilon_delta"]
    text = (
        "Gaussian noise: no pure ε holds. Of any two utterances of equal length, one makes what is released"
        f" at most exp({epsilon_text(round(epsilon, 1))}) times as likely as the other, plus"
        f" {utterance['delta']:g}."
    )
    return f"{text} {_VACUOUS}" if epsilon > math.log(_PEOPLE) else text
