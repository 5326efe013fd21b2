"""Evaluation of the files of one attack, the same for voxveil's systems and for external ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voxveil.metrics.convergence import convergence_warnings
from voxveil.metrics.disclosure import independent_bits
from voxveil.metrics.evaluation import read_evaluation
from voxveil.metrics.ranks import rank_inputs
from voxveil.metrics.sexes import by_sex, read_sexes
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
from voxveil.runtime.atomic import read_json

__all__ = ["SHOWN", "add_convergence_warnings", "evaluate_attack", "independent_disclosure"]

#: Metrics of a summary, in the order of tables.
SHOWN = (
    "eer",
    "unlinkability",
    "zebra_expected",
    "zebra_worst_case",
    "identification_rate",
    "rank_mean",
    "rank_max",
    "eps_max_pav",
    "eps_max_gauss",
    "eps_max_t",
    "eps_max_rank",
)
#: The attacker made of the others, whose bits are not to be added to theirs.
_FUSION = "fusion"


def evaluate_attack(folder: Path, options: SuiteOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Evaluate one attacker in one scenario.

    Args:
        folder: ``ATTACKER/SCENARIO`` as :func:`voxveil.attack.scenarios.write_attack` leaves it.
        options: How to evaluate.

    Returns:
        The full JSON of ``voxveil evaluate`` (with ``by_sex`` where sexes are known), and its summary: who
        attacked what, the metrics of :data:`SHOWN`, and the warnings.
    """
    found = read_evaluation(
        folder / "scores.txt",
        folder / "trials.txt",
        rank=folder / "rank.npz",
        utt2spk=folder / "utt2spk",
        enrolments=folder / "enrol.scp",
    )
    full = evaluate_scores(found.scores, found.ranks, options=options, rank_reason=found.rank_reason)
    if (folder / "spk2gender").is_file():
        sexes = read_sexes(folder / "spk2gender")
        full["by_sex"] = by_sex(
            found.scores, found.ranks, sexes, replicates=options.replicates, seed=options.seed
        )
    conditions = read_json(folder / "conditions.json")
    attack = {
        "attacker": folder.parent.name,
        "scenario": folder.name,
        "enrolment": conditions["enrolment"],
        "trial": conditions["trial"],
        "training": conditions["training"],
        "trials": full["trials"],
        "metrics": {name: full["metrics"][name] for name in SHOWN},
        "warnings": full["warnings"],
        "references": None if found.ranks is None else found.ranks.n_references,
        "inputs": None if found.ranks is None else found.ranks.n_inputs,
        "rank_histogram": None
        if found.ranks is None
        else [float(x) for x in rank_inputs(found.ranks).histogram()],
        "by_sex": full.get("by_sex"),
    }
    if "seed_eers" in conditions:
        attack["seed_eers"] = conditions["seed_eers"]
    return full, attack


def add_convergence_warnings(attacks: Sequence[dict[str, Any]]) -> None:
    """Add a convergence warning to each attack of one system whose attacker is too weak."""
    weak = convergence_warnings(attacks)
    for attack in attacks:
        name = (attack["attacker"], attack["scenario"])
        attack["warnings"] = [*attack["warnings"], *([weak[name]] if name in weak else [])]


def independent_disclosure(attacks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of the mean disclosures of all representations by scenario, in bit.

    It holds only if they are independent, and is capped at log2 N; scenarios with one are left out.
    """
    found: dict[str, Any] = {}
    for scenario in dict.fromkeys(attack["scenario"] for attack in attacks):
        chosen = [
            attack
            for attack in attacks
            if attack["scenario"] == scenario and attack["attacker"] != _FUSION and attack["references"]
        ]
        bits = [attack["metrics"]["rank_mean"]["value"] for attack in chosen]
        if len(bits) > 1 and all(value is not None for value in bits):
            found[scenario] = {
                "bits_if_independent": independent_bits(bits, chosen[0]["references"]),
                "attackers": [attack["attacker"] for attack in chosen],
                "references": chosen[0]["references"],
            }
    return found
