"""Evaluation of the files of one attack, the same for voxveil's systems and for external ones.

Attackers that are too weak for their failure to show privacy are warned of. Retraining on the attacked
system's own speech can only help an attacker; where it does worse than one that was not retrained, its
training failed. And a recipe that does badly on original speech shows nothing by doing badly on anonymized
speech.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from voxveil.metrics.disclosure import independent_bits
from voxveil.metrics.evaluation import read_attack
from voxveil.metrics.ranks import rank_inputs
from voxveil.metrics.sexes import by_sex, read_sexes
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
from voxveil.runtime.atomic import read_json

__all__ = [
    "ORIGINAL_BAR",
    "SHOWN",
    "add_convergence_warnings",
    "convergence_warnings",
    "evaluate_attack",
    "independent_disclosure",
    "not_converged_on",
]

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
    found = read_attack(folder)
    full = evaluate_scores(found.scores, found.ranks, options=options, rank_reason=found.rank_reason)
    if (folder / "spk2gender").is_file():
        sexes = read_sexes(folder / "spk2gender")
        full["by_sex"] = by_sex(
            found.scores, found.ranks, sexes, replicates=options.replicates, seed=options.seed
        )
    conditions, ranks = read_json(folder / "conditions.json"), found.ranks
    attack = {
        "attacker": folder.parent.name,
        "scenario": folder.name,
        **{name: conditions[name] for name in ("enrolment", "trial", "training")},
        "trials": full["trials"],
        "metrics": {name: full["metrics"][name] for name in SHOWN},
        "warnings": full["warnings"],
        "references": None if ranks is None else ranks.n_references,
        "inputs": None if ranks is None else ranks.n_inputs,
        "rank_histogram": None if ranks is None else rank_inputs(ranks).histogram().tolist(),
        "by_sex": full.get("by_sex"),
    }
    attack |= {name: conditions[name] for name in ("seed_eers", "pretrained") if name in conditions}
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
