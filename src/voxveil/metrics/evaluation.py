"""Reader of the files of one attack: scores, trials, speakers, and ranks where the trials give them.

Speakers come from utt2spk and the enrolment list where given, else from the target trials: an
enrolment and an utterance of a target trial are one speaker. Reasons carry counts, never names,
because they travel to MLflow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from voxveil.metrics.data import FloatArray, IntArray, RankSet, ScoreSet
from voxveil.metrics.score_files import (
    Evaluation,
    Trials,
    labelled_ranks,
    read_enrolments,
    read_npz,
    read_rank_npz,
    read_scores,
    read_trials,
    read_utt2spk,
)
from voxveil.runtime.errors import InputError

__all__ = ["read_attack", "read_evaluation"]


def read_evaluation(
    scores: Path,
    trials: Path | None = None,
    *,
    rank: Path | None = None,
    utt2spk: Path | None = None,
    enrolments: Path | None = None,
    allow_repeats: bool = False,
) -> Evaluation:
    """Read the scores of one attack with its trial list, speakers and enrolments.

    Args:
        scores: Score file (text, .gz) or .npz.
        trials: Trial list; needed with a text score file.
        rank: .npz of a rank attack on the same system, beside the trials.
        utt2spk: Speaker of each utterance.
        enrolments: Utterances of each enrolment.
        allow_repeats: Keep repeated pairs.

    Raises:
        InputError: Naming the file and line, utterance or key that does not fit.
    """
    scores = Path(scores)
    if scores.suffix == ".npz":
        for option, value in (("--trials", trials), ("--utt2spk", utt2spk), ("--enrolments", enrolments)):
            if value is not None:
                raise InputError(f"{scores}: an .npz carries its labels; {option} {value} cannot apply to it")
        found = _from_npz(scores)
    else:
        if trials is None:
            raise InputError(
                f"{scores}: a text score file needs --trials (ENROLMENT UTTERANCE target|nontarget)"
            )
        listed = read_trials(trials, allow_repeats=allow_repeats)
        models = read_enrolments(enrolments) if enrolments is not None else None
        names = read_utt2spk(utt2spk) if utt2spk is not None else None
        if models is not None and enrolments is not None:
            _check_enrolments(listed, models, Path(enrolments))
        index, values = read_scores(scores, listed, allow_repeats=allow_repeats)
        found = _from_text(listed, index, values, models, names, utt2spk)
    if rank is not None:
        return Evaluation(found.scores, read_rank_npz(rank), None)
    return found


def read_attack(folder: Path) -> Evaluation:
    """Read the files of one attack in ``folder`` as :func:`voxveil.attack.files.write_attack` leaves them."""
    return read_evaluation(
        folder / "scores.txt",
        folder / "trials.txt",
        rank=folder / "rank.npz",
        utt2spk=folder / "utt2spk",
        enrolments=folder / "enrol.scp",
    )


def _from_npz(path: Path) -> Evaluation:
    arrays = read_npz(path)
    if "scores" in arrays:
        ranks = labelled_ranks(arrays, path)
        return Evaluation(ranks.pairs(), ranks, None)
    try:
        found = ScoreSet.from_scores(arrays["target"], arrays["nontarget"])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Evaluation(
        found, None, "the scores do not say which input met which reference; --rank gives ranks"
    )


def _check_enrolments(trials: Trials, models: dict[str, list[str]], path: Path) -> None:
    for name in trials.enrolments:
        if name not in models:
            raise InputError(f"{path}: enrolment {name} of {trials.path} is not listed")
    enrolled = {utterance: name for name, utterances in models.items() for utterance in utterances}
    for utterance in trials.utterances:
        if utterance in enrolled:
            raise InputError(
                f"{trials.path}: {utterance} is both enrolled (in {enrolled[utterance]}, {path}) and tested"
            )


def _from_text(
    trials: Trials,
    index: IntArray,
    values: FloatArray,
    models: dict[str, list[str]] | None,
    names: dict[str, str] | None,
    utt2spk: Path | None,
) -> Evaluation:
    enrolment, utterance = trials.enrolment[index], trials.utterance[index]
    is_target = trials.is_target[index]
    known: tuple[str, ...] | None = None
    reason = None
    if names is None:
        enrol_speaker, test_speaker, reason = _infer(trials)
    else:
        enrol_speaker, test_speaker, known = _look_up(trials, models, names, Path(str(utt2spk)))
    if reason is not None:
        scores = ScoreSet(values, is_target, speaker_reason=reason)
    else:
        scores = ScoreSet.of_speakers(
            values, is_target, enrol_speaker[enrolment], test_speaker[utterance], known
        )
    ranks, rank_reason = _as_ranks(trials, enrolment, utterance, is_target, values)
    return Evaluation(scores, ranks, rank_reason)


def _infer(trials: Trials) -> tuple[IntArray, IntArray, str | None]:
    """Return the speaker of each enrolment and utterance by the target trials, and a reason if unknown."""
    n_enrolments, n_utterances = len(trials.enrolments), len(trials.utterances)
    e, u = trials.enrolment[trials.is_target], trials.utterance[trials.is_target] + n_enrolments
    size = n_enrolments + n_utterances
    graph = coo_array((np.ones(e.size, dtype=np.int8), (e, u)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    component = component.astype(np.int64)
    enrol, test = component[:n_enrolments], component[n_enrolments:]
    linked = np.zeros(size, dtype=np.bool_)
    linked[e] = linked[u] = True
    orphans = np.count_nonzero(~linked[n_enrolments:])
    strangers = np.count_nonzero(~linked[:n_enrolments])
    wrong = np.count_nonzero(~trials.is_target & (enrol[trials.enrolment] == test[trials.utterance]))
    reason = None
    if orphans or strangers:
        reason = (
            f"{orphans} of {n_utterances} tested utterances and {strangers} of {n_enrolments} enrolments "
            "stand in no target trial, so their speakers are unknown; --utt2spk gives them"
        )
    elif wrong:
        reason = (
            f"{wrong} nontarget trials pair what target trials hold to be one speaker, "
            "so speakers cannot be inferred"
        )
    return enrol, test, reason


def _look_up(
    trials: Trials, models: dict[str, list[str]] | None, names: dict[str, str], path: Path
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Return the speaker of each enrolment and utterance by utt2spk, and their names; labels must agree."""
    speakers: dict[str, int] = {}
    known = set(names.values())

    def speaker_of(utterance: str) -> str:
        if utterance not in names:
            raise InputError(f"{path}: no speaker for utterance {utterance} of {trials.path}")
        return names[utterance]

    def speaker_of_enrolment(name: str) -> str:
        if models is not None:
            found = sorted({speaker_of(utterance) for utterance in models[name]})
            if len(found) != 1:
                raise InputError(
                    f"{path}: enrolment {name} holds utterances of {len(found)} speakers: "
                    + ", ".join(found[:3])
                )
            return found[0]
        if name in names:
            return names[name]
        if name in known:
            return name
        raise InputError(
            f"{path}: enrolment {name} is neither an utterance nor a speaker there; --enrolments lists it"
        )

    test = np.array([speakers.setdefault(speaker_of(x), len(speakers)) for x in trials.utterances])
    enrol = np.array([speakers.setdefault(speaker_of_enrolment(x), len(speakers)) for x in trials.enrolments])
    same = enrol[trials.enrolment] == test[trials.utterance]
    wrong = same != trials.is_target
    if wrong.any():
        i = int(np.argmax(wrong))
        label = "target" if trials.is_target[i] else "nontarget"
        relation = "one speaker" if same[i] else "two speakers"
        raise InputError(
            f"{trials.path}: {trials.pair(int(trials.keys[i]))} is labelled {label}, "
            f"but {path} says {relation}"
        )
    return enrol.astype(np.int64), test.astype(np.int64), tuple(speakers)


def _as_ranks(
    trials: Trials, enrolment: IntArray, utterance: IntArray, is_target: np.ndarray, values: FloatArray
) -> tuple[RankSet | None, str | None]:
    """Return the trials as a rank attack where every utterance met every enrolment exactly once."""
    n_enrolments, n_utterances = len(trials.enrolments), len(trials.utterances)
    if (
        values.size != n_enrolments * n_utterances
        or np.unique(utterance * n_enrolments + enrolment).size != values.size
    ):
        share = values.size / (n_enrolments * n_utterances)
        return None, (
            f"not every input was scored once against the same {n_enrolments} references "
            f"({100 * share:.3g} % of the pairs are there); --rank gives ranks"
        )
    if n_enrolments < 2:
        return None, "there is a single reference; ranks need 2"
    own_counts = np.bincount(utterance[is_target], minlength=n_utterances)
    if (own_counts != 1).any():
        wrong = int(np.count_nonzero(own_counts != 1))
        return None, f"{wrong} of {n_utterances} inputs have not exactly one reference of their own speaker"
    matrix = np.empty((n_utterances, n_enrolments))
    matrix[utterance, enrolment] = values
    speaker_index = np.empty(n_utterances, dtype=np.int64)
    speaker_index[utterance[is_target]] = enrolment[is_target]
    return RankSet(matrix, speaker_index, trials.enrolments), None
