"""Reader of the summaries of all systems, checked to belong to one run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from voxveil.metrics.attacked import convergence_warnings
from voxveil.metrics.evidence import WARNING_CODES
from voxveil.results.report.shape import SUMMARY, check_shape
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import IncompleteInputError

__all__ = [
    "Attack",
    "Summary",
    "attacks",
    "headline",
    "read_summaries",
    "results_digest",
    "same_corpus",
    "words_alone",
    "warnings_by_code",
]

#: One system's ``summary.json``.
Summary = Mapping[str, Any]
#: One of its attacks.
Attack = Mapping[str, Any]


def read_summaries(folder: Path, systems: Iterable[str]) -> list[Summary]:
    """Read ``folder/SYSTEM/summary.json`` of every system, in the order given.

    A system knows its own attacks only; here those whose recipe is weak on original speech are warned of.

    Raises:
        InputError: One is missing, of another format, or lacks what is shown.
    """
    found = [_read(Path(folder) / system / "summary.json", system) for system in systems]
    plain = [
        {**attack, "scenario": "original"}
        for summary in found
        if summary["kind"] == "original"
        for attack in summary["attacks"]
    ]
    return [
        summary if summary["kind"] == "original" else {**summary, "attacks": _warned(summary, plain)}
        for summary in found
    ]


def results_digest(folder: Path, systems: Iterable[str]) -> str:
    """Return the SHA-256 over the evaluate outputs of ``systems``: equal results, equal digest."""
    lines = [f"{name} {require_done(Path(folder) / name, 'metrics').digest}\n" for name in sorted(systems)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def attacks(summaries: Sequence[Summary]) -> list[tuple[Summary, Attack]]:
    """Return every (system, attack), the systems in order."""
    return [(summary, attack) for summary in summaries for attack in summary["attacks"]]


def warnings_by_code(summaries: Sequence[Summary]) -> dict[str, list[tuple[str, str]]]:
    """Return (system, text) of every warning by its code, in the order of ``WARNING_CODES``."""
    found: dict[str, list[tuple[str, str]]] = {code: [] for code in WARNING_CODES}
    for summary, attack in attacks(summaries):
        for warning in attack["warnings"]:
            found.setdefault(warning["code"], []).append((summary["system"], warning["text"]))
    return {code: warned for code, warned in found.items() if warned and code in WARNING_CODES}


def headline(summary: Summary) -> Attack:
    """Return the attack shown in figures: the semi-informed one of smallest EER, else the first."""
    retrained = [attack for attack in summary["attacks"] if attack["scenario"] == "semi_informed"]
    return min(retrained, key=_eer, default=summary["attacks"][0])


def same_corpus(summaries: Sequence[Summary]) -> Mapping[str, Any]:
    """Return the facts of the corpus all systems were run on.

    Raises:
        IncompleteInputError: Two systems were run on different corpora: one table cannot hold them.
    """
    first = summaries[0]
    for other in summaries[1:]:
        if other["corpus"] != first["corpus"]:
            raise IncompleteInputError(
                f"systems {first['system']} and {other['system']} were run on different corpora;"
                " run the stages of both again"
            )
    return dict(first["corpus"])


def words_alone(summaries: Sequence[Summary]) -> Attack | None:
    """Return the attack on the transcripts of the trials, the same for all systems; None without one."""
    found = (summary.get("words_alone") for summary in summaries)
    return next((attack for attack in found if attack), None)


def _eer(attack: Attack) -> float:
    value = attack["metrics"]["eer"]["value"]
    return math.inf if value is None else float(value)


def _warned(summary: Summary, plain: Sequence[Attack]) -> list[Attack]:
    """Return the attacks on a system with the warnings that need those on original speech."""
    tested = summary["attacks"]
    weak = convergence_warnings([*tested, *plain])
    return [_with(attack, weak.get((attack["attacker"], attack["scenario"]))) for attack in tested]


def _with(attack: Attack, warning: Mapping[str, str] | None) -> Attack:
    if warning is None or warning["code"] in {existing["code"] for existing in attack["warnings"]}:
        return attack
    return {**attack, "warnings": [*attack["warnings"], warning]}


def _read(path: Path, system: str) -> Summary:
    content = read_json(path)
    again = "run its evaluate stage again"
    if not isinstance(content, dict) or content.get("format") != 1 or content.get("system") != system:
        raise IncompleteInputError(f"{path}: not the summary of system {system}; {again}")
    if not content.get("attacks"):
        raise IncompleteInputError(f"{path}: holds no attack; {again}")
    check_shape(path, content, SUMMARY)
    return content
