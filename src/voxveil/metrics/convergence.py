"""Warnings for attackers that are too weak for their failure to show privacy.

Retraining on the attacked system's own speech can only help an attacker; where it does worse than one
that was not retrained, its training failed. And a recipe that does badly on original speech shows nothing
by doing badly on anonymized speech.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ORIGINAL_BAR", "convergence_warnings", "not_converged_on"]

#: EER in % that a recipe must reach on original speech.
ORIGINAL_BAR = 12.0
_CODE = "attacker_not_converged"
_REMEDY = "train_attacker.seeds: 3 trains three of a kind that a seed changes, and the strongest counts"


def convergence_warnings(attacks: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the warning of each (attacker, scenario) that is too weak to conclude from.

    Args:
        attacks: Of one system: ``attacker``, ``scenario``, ``training``, ``enrolment``, ``trial`` and
            ``metrics`` with ``eer`` (``value`` in %, ``ci95`` or None).
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    by_name = {(attack["attacker"], attack["scenario"]): attack for attack in attacks}
    for (attacker, scenario), attack in by_name.items():
        if scenario not in ("semi_informed", "original") or attack["metrics"]["eer"]["value"] is None:
            continue
        # The original system calls its one row semi-informed; other systems may have it beside theirs.
        plain = attack["training"] == attack["trial"] == "original"
        text = _misses_its_bar(attack if plain else by_name.get((attacker, "original")))
        if not plain:
            text = _retraining_hurt(attack, by_name.get((attacker, "lazy_informed"))) or text
        if text:
            found[attacker, scenario] = {"code": _CODE, "text": text}
    return found


def not_converged_on(attacks: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the states of training speech, ``original`` and ``anonymized``, on which an attacker failed.

    Who misses the bar on original speech has a weak recipe, so every training of it is in doubt; what
    makes it worse than the attacker without retraining is the training on anonymized speech alone.

    Args:
        attacks: Of one attacker on one system, as for :func:`convergence_warnings`.
    """
    weak = {scenario for _, scenario in convergence_warnings(attacks)}
    if "original" in weak:
        return ("original", "anonymized")
    return ("anonymized",) if weak else ()


def _misses_its_bar(original: Mapping[str, Any] | None) -> str:
    value = None if original is None else original["metrics"]["eer"]["value"]
    if value is None or value <= ORIGINAL_BAR:
        return ""
    return (
        f"its EER on original speech is {value:.1f} %, above {ORIGINAL_BAR:g} %:"
        " the recipe is weak, and failing on anonymized speech shows little;"
        f" {_REMEDY}"
    )


def _retraining_hurt(semi: Mapping[str, Any], lazy: Mapping[str, Any] | None) -> str:
    retrained, best = semi["metrics"]["eer"], None if lazy is None else lazy["metrics"]["eer"]
    if best is None or not retrained["ci95"] or not best["ci95"] or retrained["ci95"][0] <= best["ci95"][1]:
        return ""
    return (
        f"retrained on anonymized speech it has EER {retrained['value']:.1f} %, worse than the"
        f" {best['value']:.1f} % of the attacker that was not: its training failed; {_REMEDY}"
    )
