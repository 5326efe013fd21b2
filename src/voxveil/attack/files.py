"""The files of one attack: what the metrics read, and under which conditions it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.asv import Conditions
from voxveil.attack.rank import RankScores
from voxveil.corpus.trials import TrialLists, write_trials
from voxveil.storage.atomic import write_json, write_text

__all__ = ["write_attack"]


def write_attack(
    folder: Path,
    conditions: Conditions,
    lists: TrialLists,
    scores: NDArray[np.float64],
    ranks: RankScores,
    speaker_of: Mapping[str, str],
    *,
    short_clips: int,
) -> None:
    """Write ``ATTACKER/SCENARIO/`` below ``folder``; equal results give equal bytes.

    The files are ``scores.txt`` (``ENROLMENT UTTERANCE SCORE``, in the order of the trials),
    ``trials.txt``, ``enrol.scp`` and ``utt2spk`` (what intervals over speakers need), ``rank.npz``
    and ``conditions.json``.

    Args:
        folder: Where to.
        conditions: What a row made from these scores must say.
        lists: Enrolments and trials.
        scores: (trials,) score of each trial.
        ranks: The rank protocol scored.
        speaker_of: Speaker of every utterance.
        short_clips: Utterances that were repeated to be long enough for the attacker.
    """
    target = Path(folder) / conditions.attacker / conditions.scenario
    enrolled = {item for items in lists.enrolments.values() for item in items}
    used = sorted(enrolled | set(lists.trial_utterances) | set(ranks.inputs.tolist()))
    rows = zip(lists.trials, scores, strict=True)
    _write_lines(target / "scores.txt", (f"{t.enrolment} {t.utterance} {score:.9g}" for t, score in rows))
    write_trials(target, lists)
    _write_lines(target / "utt2spk", (f"{item} {speaker_of[item]}" for item in used))
    ranks.save(target / "rank.npz")
    counts = {
        "enrolments": len(lists.enrolments),
        "rank_inputs": len(ranks.inputs),
        "rank_references": len(ranks.reference_labels),
        "short_clips_repeated": short_clips,
        "speakers": len({speaker_of[item] for item in used}),
        "trials_nontarget": sum(not trial.target for trial in lists.trials),
        "trials_target": sum(trial.target for trial in lists.trials),
    }
    write_json(target / "conditions.json", {"format": 1, **asdict(conditions), "counts": counts})


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines))
