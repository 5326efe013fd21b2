"""Evaluation of the attacks on one test set, for ``voxveil attack`` and the pipeline. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voxveil.metrics.attacked import add_convergence_warnings, evaluate_attack, independent_disclosure
from voxveil.metrics.suite import SuiteOptions

__all__ = ["judge_set"]

#: Told the full result and the summary of each attack, with the folder of its scores.
Keep = Callable[[Path, dict[str, Any], dict[str, Any]], None]


def judge_set(
    name: str,
    folders: Sequence[Path],
    speakers: Mapping[str, int],
    options: SuiteOptions,
    keep: Keep,
) -> dict[str, Any]:
    """Evaluate every attack on a set and return the results.

    Args:
        name: Of the set.
        folders: ``ATTACKER/SCENARIO`` of each attack, in the order of the table.
        speakers: How many the attackers were trained on (``train``) and tried on (``test``).
        options: How to evaluate.
        keep: Takes each result.
    """
    attacks = []
    for folder in folders:
        full, shown = evaluate_attack(folder, options)
        keep(folder, full, shown)
        attacks.append(shown)
    add_convergence_warnings(attacks)
    return {
        "set": name,
        "attacks": attacks,
        "independent": independent_disclosure(attacks),
        "speakers": dict(speakers),
    }
