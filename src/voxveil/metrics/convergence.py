"""Does an attacker's failure mean privacy, or a weak attacker?

Retraining on the attacked system's own speech can only help an attacker; where it does worse than one
that was not retrained, its training failed. And a recipe that does badly on original speech shows nothing
by doing badly on anonymized speech.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ORIGINAL_BAR", "convergence_warnings"]

#: EER in % that a recipe must reach on original speech.
ORIGINAL_BAR = 12.0
_CODE = "attacker_not_converged"


def convergence_warnings(attacks: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the warning of each (attacker, scenario) that is too weak to conclude from.

    Args:
        attacks: Of one system: ``attacker``, ``scenario``, ``training``, ``enrolment``, ``trial`` and
            ``metrics`` with ``eer`` (``value`` in %, ``ci95`` or None).
    """
    found: dict[tuple[str, str], dict[str, str]] = {}
    by_name = {(attack["attacker"], attack["scenario"]): attack for attack in attacks}
    for (attacker, scenario), attack in by_name.items():
        eer = attack["metrics"]["eer"]
        if eer["value"] is None or scenario != "semi_informed":
            continue
        if attack["training"] == attack["trial"] == "original" and eer["value"] > ORIGINAL_BAR:
            found[attacker, scenario] = {
                "code": _CODE,
                "text": f"its EER on original speech is {eer['value']:.1f} %, above {ORIGINAL_BAR:g} %:"
                " the recipe is weak, and failing on anonymized speech shows little",
            }
        lazy = by_name.get((attacker, "lazy_informed"))
        if lazy is None or not eer["ci95"] or not lazy["metrics"]["eer"]["ci95"]:
            continue
        best = lazy["metrics"]["eer"]
        if eer["ci95"][0] > best["ci95"][1]:
            found[attacker, scenario] = {
                "code": _CODE,
                "text": f"retrained on anonymized speech it has EER {eer['value']:.1f} %, worse than the"
                f" {best['value']:.1f} % of the attacker that was not: its training failed",
            }
    return found
