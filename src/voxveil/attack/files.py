"""The files of one attack: what the metrics read, and under which conditions it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.asv import Conditions
from voxveil.attack.rank import RankScores
from voxveil.storage.atomic import write_json, write_text

__all__ = ["Trial", "write_attack"]

#: (enrolment, utterance, same speaker).
Trial = tuple[str, str, bool]


def write_attack(
    folder: Path,
    conditions: Conditions,
    trials: Sequence[Trial],
    scores: NDArray[np.float64],
    enrolments: Mapping[str, Sequence[str]],
    speaker_of: Mapping[str, str],
    ranks: RankScores,
    counts: Mapping[str, int],
) -> None:
    """Write ``ATTACKER/SCENARIO/`` below ``folder``; equal results give equal bytes.

    The files are ``scores.txt``, ``trials.txt``, ``enrol.scp`` and ``utt2spk`` (what intervals over
    speakers need), ``rank.npz`` and ``conditions.json``.
    """
    target = Path(folder) / conditions.attacker / conditions.scenario
    used = sorted(
        {item for items in enrolments.values() for item in items}
        | {item for _, item, _ in trials}
        | set(ranks.inputs.tolist())
    )
    rows = zip(trials, scores, strict=True)
    _write_lines(target / "scores.txt", (f"{e} {u} {score:.9g}" for (e, u, _), score in rows))
    _write_lines(target / "trials.txt", (f"{e} {u} {'target' if t else 'nontarget'}" for e, u, t in trials))
    _write_lines(
        target / "enrol.scp", (f"{name} {' '.join(enrolments[name])}" for name in sorted(enrolments))
    )
    _write_lines(target / "utt2spk", (f"{item} {speaker_of[item]}" for item in used))
    ranks.save(target / "rank.npz")
    write_json(target / "conditions.json", {"format": 1, **asdict(conditions), "counts": dict(counts)})


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a text file, each ended by a newline."""
    write_text(path, "".join(f"{line}\n" for line in lines))
