"""Files of one attack: scores and trials for the metrics, and the conditions of the attack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import Conditions
from voxveil.attack.rank import RankScores
from voxveil.corpus.trials import TrialLists, write_trials
from voxveil.runtime.atomic import write_json, write_text

__all__ = ["write_attack"]


def write_attack(
    target: Path,
    conditions: Conditions,
    lists: TrialLists,
    scores: NDArray[np.float64],
    ranks: RankScores,
    speaker_of: Mapping[str, str],
    *,
    short_clips: int | None = None,
    sex_of: Mapping[str, str] | None = None,
    seed_eers: Sequence[float] = (),
) -> None:
    """Write the files of one attack; equal results give equal bytes.

    The files are ``scores.txt`` (``ENROLMENT UTTERANCE SCORE``, in the order of the trials),
    ``trials.txt``, ``enrol.scp`` and ``utt2spk`` (what intervals over speakers need), ``spk2gender``
    (what results by sex need), ``rank.npz`` and ``conditions.json``.

    Args:
        target: The folder to write them in, ``ATTACKER/SCENARIO``.
        conditions: What a row made from these scores must say.
        lists: Enrolments and trials.
        scores: (trials,) score of each trial.
        ranks: The rank protocol scored.
        speaker_of: Speaker of every utterance.
        short_clips: Utterances that were repeated to be long enough for the attacker, where counted.
        sex_of: ``F`` or ``M`` of every speaker, where known.
        seed_eers: EER in % of the attacker with each seed, where there were several; the strongest counts.
    """
    enrolled = {item for items in lists.enrolments.values() for item in items}
    used = sorted(enrolled | set(lists.trial_utterances) | set(ranks.inputs.tolist()))
    rows = zip(lists.trials, scores, strict=True)
    _write_lines(target / "scores.txt", (f"{t.enrolment} {t.utterance} {score:.9g}" for t, score in rows))
    write_trials(target, lists)
    _write_lines(target / "utt2spk", (f"{item} {speaker_of[item]}" for item in used))
    speakers = sorted({speaker_of[item] for item in used})
    if sex_of is not None:
        _write_lines(target / "spk2gender", (f"{name} {sex_of[name].lower()}" for name in speakers))
    ranks.save(target / "rank.npz")
    counts = {
        "enrolments": len(lists.enrolments),
        "rank_inputs": len(ranks.inputs),
        "rank_references": len(ranks.reference_labels),
        "speakers": len(speakers),
        "trials_nontarget": sum(not trial.target for trial in lists.trials),
        "trials_target": sum(trial.target for trial in lists.trials),
    }
    if short_clips is not None:
        counts["short_clips_repeated"] = short_clips
    content = {"format": 1, **asdict(conditions), "counts": counts}
    if len(seed_eers) > 1:
        content["seed_eers"] = list(seed_eers)
    write_json(target / "conditions.json", content)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines))
