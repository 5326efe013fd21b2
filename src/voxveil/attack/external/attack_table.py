"""Evaluation of attacks on external speech, and its text tables. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voxveil.metrics.attacked import add_convergence_warnings, evaluate_attack, independent_disclosure
from voxveil.metrics.catalogue import undefined_text
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.terminal import align_columns

__all__ = ["MATRIX", "format_attacks", "judge_set"]

#: Receives the full result and the summary of an attack, with the folder of its scores.
Keep = Callable[[Path, dict[str, Any], dict[str, Any]], None]

#: Cell of the matrix that a scenario stands in: enrolment and trial.
MATRIX = {"original": "OO", "ignorant": "OA", "lazy_informed": "AA", "semi_informed": "AA"}
_WORDS_NOTE = (
    "The words alone: TF-IDF of the trials' transcripts, without speech. What it finds, no system that keeps"
    " the words can hide."
)
_HEADER = (
    "attacker",
    "scenario",
    "",
    "trained on",
    "EER %",
    "if nothing leaks",
    "TPR % at FPR 1 %",
    "at FPR 0.1 %",
    "unlinkability",
    "ZEBRA bit",
    "identified %",
    "if nothing leaks",
    "rank bit",
    "if nothing leaks",
)


def judge_set(
    name: str,
    folders: Sequence[Path],
    speakers: Mapping[str, int],
    options: SuiteOptions,
    keep: Keep,
    words: Path | None = None,
) -> dict[str, Any]:
    """Evaluate every attack on a set and return the results.

    Args:
        name: Of the set.
        folders: ``ATTACKER/SCENARIO`` of each attack, in the order of the table.
        speakers: How many the attackers were trained on (``train``) and tried on (``test``).
        options: How to evaluate.
        keep: Receives each result.
        words: Folder of the attack on transcripts, where there is one.
    """
    words_alone = None
    if words is not None:
        full, words_alone = evaluate_attack(words, options)
        keep(words, full, words_alone)
    attacks = []
    for folder in folders:
        full, shown = evaluate_attack(folder, options)
        keep(folder, full, shown)
        attacks.append(shown)
    add_convergence_warnings(attacks)
    return {
        "set": name,
        "attacks": attacks,
        "words_alone": words_alone,
        "independent": independent_disclosure(attacks),
        "speakers": dict(speakers),
    }


def format_attacks(results: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> str:
    """Return one table for each set, results by sex, and every warning.

    Args:
        results: Of each set: ``set``, ``attacks`` (summaries of :mod:`voxveil.metrics.attacked`),
            ``independent`` and ``speakers``.
        notes: How the speech was taken.
    """
    lines = [f"note: {note}" for note in notes]
    for result in results:
        speakers = result["speakers"]
        attacks = result["attacks"]
        lines += [
            "",
            f"{result['set']}: {speakers['test']} speakers, attackers trained on {speakers['train']}",
        ]
        lines += ["trials: " + _trials(attacks[0]), ""]
        words = result.get("words_alone")
        rows = [_row(attack) for attack in attacks]
        rows += [("the words alone", "", "", *_row(words)[3:])] if words else []
        lines += align_columns([_HEADER, *rows])
        lines += ["", *_sexes(attacks)]
        for scenario, found in result["independent"].items():
            lines.append(
                f"{scenario}: {found['bits_if_independent']:.3g} bit if the {len(found['attackers'])}"
                f" representations were independent, of log2 {found['references']} at most"
            )
        lines += [
            f"warning {warning['code']} ({attack['attacker']}, {attack['scenario']}): {warning['text']}"
            for attack in attacks
            for warning in attack["warnings"]
        ]
    lines += [
        "",
        "OO, OA, AA: original or anonymized enrolment and trials. OO says nothing of the anonymizer.",
        "A value inside 'if nothing leaks' does not prove privacy by itself.",
        *([_WORDS_NOTE] if any(result.get("words_alone") for result in results) else []),
    ]
    return "\n".join(lines).lstrip("\n")


def _trials(attack: Mapping[str, Any]) -> str:
    trials = attack["trials"]
    ranks = (
        f"; ranks: {attack['inputs']} inputs against {attack['references']}" if attack["references"] else ""
    )
    return f"{trials['target']} target, {trials['nontarget']} nontarget{ranks}"


def _row(attack: Mapping[str, Any]) -> tuple[str, ...]:
    metrics = attack["metrics"]
    seeds = attack.get("seed_eers")
    name = attack["attacker"] if not seeds else f"{attack['attacker']} (best of {len(seeds)})"
    return (
        name,
        attack["scenario"],
        MATRIX.get(attack["scenario"], ""),
        attack["training"],
        _cell(metrics["eer"]),
        _bounds(metrics["eer"]["null95"]),
        _cell(metrics["tpr_fpr1"]),
        _cell(metrics["tpr_fpr01"]),
        _cell(metrics["unlinkability"]),
        _cell(metrics["zebra_expected"]),
        _cell(metrics["identification_rate"]),
        _bounds(metrics["identification_rate"]["null95"]),
        _cell(metrics["rank_mean"]),
        _bounds(metrics["rank_mean"]["null95"]),
    )


def _sexes(attacks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of EER by the sex of trials, ranks within sex, and sex itself."""
    parts = ("same_sex", "F", "M", "pooled")
    rows = [
        ("attacker", "scenario", *(f"EER % {part}" for part in parts), "rank bit F", "rank bit M", "sex bit")
    ]
    for attack in attacks:
        found = attack["by_sex"]
        if not found:
            continue
        trials = [_cell(found["trials"][p]["eer"]) if found["trials"].get(p) else "-" for p in parts]
        ranks = found["ranks"] or {}
        within = [_cell(ranks[sex]["rank_mean"]) if ranks.get(sex) else "-" for sex in ("F", "M")]
        sex = _cell(found["sex"]["bits"]) if found["sex"] else "-"
        rows.append((attack["attacker"], attack["scenario"], *trials, *within, sex))
    return [*align_columns(rows), ""] if len(rows) > 1 else []


def _cell(entry: Mapping[str, Any]) -> str:
    value = entry["value"]
    if value is None:
        return undefined_text(entry.get("note") or "")
    return f"{value:.3g} {_bounds(entry['ci95'])}".rstrip()


def _bounds(bounds: Sequence[float] | None) -> str:
    return "" if bounds is None else f"[{bounds[0]:.3g}, {bounds[1]:.3g}]"
