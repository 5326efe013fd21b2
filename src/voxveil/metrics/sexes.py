r"""Metrics of an attack within each sex, and disclosure of the sex itself.

Nontarget trials are usually of one sex, since two sexes are easily told apart; pooled trials hold both.
Up to 1 bit of what ranks disclose can be sex. So ranks are also taken within each sex, and the
disclosure of sex itself is measured: every input is compared with the mean score of each sex, its own
speaker left out, and with N = 2 the mean disclosure of the rank of its own sex is
:math:`\sum_k \gamma_k \log_2 2 \gamma_k` bit, 1 at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.metrics.data import FloatArray, IntArray, RankSet, ScoreSet, UndefinedMetricError
from voxveil.metrics.disclosure import mean_disclosure
from voxveil.metrics.eer import eer
from voxveil.metrics.intervals import SortedTrials, bootstrap_weights, interval, permutations
from voxveil.metrics.linkability import linkability
from voxveil.metrics.ranks import Ranks, permuted_histograms, rank_inputs, speaker_histograms
from voxveil.metrics.score_files import read_fields
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["SEXES", "by_sex", "ranks_within_sex", "read_sexes", "sex_disclosure", "trials_by_sex"]

SEXES = ("F", "M")


def read_sexes(path: Path) -> dict[str, str]:
    """Read ``SPEAKER f|m`` lines; returns ``F`` or ``M`` by speaker.

    Raises:
        InputError: Naming file and line: a speaker that is there twice, or another word for a sex.
    """
    found: dict[str, str] = {}
    for number, (speaker, word) in read_fields(path, 2, "SPEAKER f|m"):
        sex = word[:1].upper()
        if word.lower() not in ("f", "m", "female", "male"):
            raise InputError(f"{path}:{number}: sex must be f or m, got {word!r}")
        if speaker in found:
            raise InputError(f"{path}:{number}: speaker {speaker} is there twice")
        found[speaker] = sex
    return found


def by_sex(
    scores: ScoreSet, ranks: RankSet | None, sex_of: Mapping[str, str], *, replicates: int, seed: int
) -> dict[str, Any]:
    """Return the metrics by sex: ``trials``, ``ranks`` and ``sex``.

    Args:
        scores: Trials whose speakers have names.
        ranks: The rank attack on the same speakers, or None.
        sex_of: ``F`` or ``M`` of every speaker.
        replicates: Behind each interval; 0 computes none.
        seed: Seed of the replicates.
    """
    found: dict[str, Any] = {"trials": {}, "ranks": None, "sex": None}
    for name, part in trials_by_sex(scores, ranks, sex_of).items():
        found["trials"][name] = None if part is None else _verification(part, replicates, seed)
    if ranks is not None:
        found["ranks"] = {
            name: None if part is None else _identification(part, replicates, seed)
            for name, part in ranks_within_sex(ranks, sex_of).items()
        }
        found["sex"] = sex_disclosure(ranks, sex_of, replicates=replicates, seed=seed)
    return found


def trials_by_sex(
    scores: ScoreSet, ranks: RankSet | None, sex_of: Mapping[str, str]
) -> dict[str, ScoreSet | None]:
    """Return trials of one sex, of women, of men, and of both pooled; None where they cannot be judged.

    The pooled trials are those of the list where it mixes sexes, else all pairs of the rank attack.
    """
    if scores.speakers is None or scores.enrol_speaker is None or scores.test_speaker is None:
        return {}
    sexes = np.array([SEXES.index(sex_of[name]) for name in scores.speakers])
    enrolled, tested = sexes[scores.enrol_speaker], sexes[scores.test_speaker]
    same = enrolled == tested
    parts: dict[str, ScoreSet | None] = {"same_sex": _part(scores, same)}
    for index, sex in enumerate(SEXES):
        parts[sex] = _part(scores, same & (tested == index))
    pooled = scores if not same.all() else None if ranks is None else ranks.pairs()
    parts["pooled"] = pooled
    return parts


def ranks_within_sex(ranks: RankSet, sex_of: Mapping[str, str]) -> dict[str, RankSet | None]:
    """Return the rank attack among women only and among men only; None with fewer than 2 of them."""
    sexes = np.array([sex_of[name] for name in ranks.speakers])
    parts: dict[str, RankSet | None] = {}
    for sex in SEXES:
        columns = np.flatnonzero(sexes == sex)
        rows = np.flatnonzero(np.isin(ranks.speaker_index, columns))
        if len(columns) < 2 or not len(rows):
            parts[sex] = None
            continue
        new_column = np.full(ranks.n_references, -1, dtype=np.int64)
        new_column[columns] = np.arange(len(columns))
        names = tuple(ranks.speakers[column] for column in columns)
        parts[sex] = RankSet(
            ranks.scores[np.ix_(rows, columns)], new_column[ranks.speaker_index[rows]], names
        )
    return parts


def sex_disclosure(
    ranks: RankSet, sex_of: Mapping[str, str], *, replicates: int, seed: int
) -> dict[str, Any] | None:
    """Return how well the scores reveal the speaker's sex; None without 2 speakers of each sex.

    Returns:
        ``correct`` (%, 50 is chance) and ``bits`` (mean disclosure, at most 1), each with ``value``, ``ci95``
        over input speakers and ``null95`` over permutations of the sexes among the speakers.
    """
    sexes = np.array([SEXES.index(sex_of[name]) for name in ranks.speakers])
    if min(np.bincount(sexes, minlength=2)) < 2:
        return None
    scores = np.asarray(ranks.scores, dtype=np.float64)
    histograms = _sex_histograms(scores, ranks.speaker_index, sexes)
    total = histograms.sum(axis=0)
    found: dict[str, Any] = {"references": 2, "inputs": ranks.n_inputs}
    ci, null = np.zeros((0, 2)), np.zeros((0, 2))
    if replicates:
        present = np.unique(ranks.speaker_index)
        weights = bootstrap_weights(len(present), replicates, seed)
        ci = weights @ histograms[present]
        rng = stream(seed, "metrics", "sexes", len(sexes))
        drawn = [rng.permutation(sexes) for _ in range(replicates)]
        null = np.stack(
            [_sex_histograms(scores, ranks.speaker_index, permuted).sum(axis=0) for permuted in drawn]
        )
    return found | _entries(("correct", "bits"), total, ci, null)


def _entries(
    names: tuple[str, str], total: FloatArray, ci: FloatArray, null: FloatArray
) -> dict[str, dict[str, Any]]:
    """Return the share of rank 1 and the mean disclosure of histograms, under two names."""
    return {
        name: _entry(unit, float(of(total[None])[0]), of(ci), of(null))
        for name, unit, of in ((names[0], "%", _first_share), (names[1], "bit", _bits))
    }


def _entry(unit: str, value: float, ci: FloatArray, null: FloatArray) -> dict[str, Any]:
    """Return a metric with the intervals of its replicates; a value that is undefined is None."""
    return {
        "value": value if np.isfinite(value) else None,
        "unit": unit,
        "ci95": _bounds(ci),
        "null95": _bounds(null),
    }


def _first_share(histograms: FloatArray) -> FloatArray:
    share: FloatArray = 100.0 * histograms[:, 0] / histograms.sum(axis=1)
    return share


def _bits(histograms: FloatArray) -> FloatArray:
    return mean_disclosure(histograms / histograms.sum(axis=1, keepdims=True))


def _sex_histograms(scores: FloatArray, speaker_index: IntArray, sexes: IntArray) -> FloatArray:
    """Return (S, 2) of each speaker's inputs: own sex first, or second; a tie counts half for each."""
    rows = np.arange(len(speaker_index))
    member = np.stack([sexes == 0, sexes == 1], axis=1).astype(np.float64)
    sums, counts = scores @ member, member.sum(axis=0)[None].repeat(len(speaker_index), axis=0)
    mine = sexes[speaker_index]
    sums[rows, mine] -= scores[rows, speaker_index]
    counts[rows, mine] -= 1
    means = sums / counts
    gap = means[rows, mine] - means[rows, 1 - mine]
    right = np.where(gap > 0, 1.0, np.where(gap == 0, 0.5, 0.0))
    size = len(sexes)
    return np.stack(
        [np.bincount(speaker_index, right, size), np.bincount(speaker_index, 1.0 - right, size)], axis=1
    )


def _part(scores: ScoreSet, keep: np.ndarray) -> ScoreSet | None:
    """Return some of the trials, or None where a class is empty."""
    if scores.enrol_speaker is None or scores.test_speaker is None:
        return None
    is_target = scores.is_target[keep]
    if is_target.all() or not is_target.any():
        return None
    enrol, test = scores.enrol_speaker[keep], scores.test_speaker[keep]
    return ScoreSet.of_speakers(scores.scores[keep], is_target, enrol, test, scores.speakers)


def _verification(scores: ScoreSet, replicates: int, seed: int) -> dict[str, Any]:
    """Return EER and linkability of trials with intervals and null readings."""
    trials = SortedTrials.from_scores(scores)
    table = scores.table()
    found: dict[str, Any] = {
        "trials": {"target": table.n_target, "nontarget": table.n_nontarget, "speakers": trials.n_speakers}
    }
    resampled: list[Any] = []
    relabelled: list[Any] = []
    if replicates and trials.n_speakers >= 2:
        weights = bootstrap_weights(trials.n_speakers, replicates, seed)
        resampled = [partial(trials.resampled, w) for w in weights]
        shuffled = permutations(trials.compared(), replicates, seed)
        relabelled = [partial(trials.relabelled, p) for p in shuffled]
    for name, unit, of in (
        ("eer", "%", lambda t: 100.0 * eer(t)),
        ("unlinkability", "fraction", lambda t: 1.0 - linkability(t)),
    ):
        ci, null = (np.array([_number(make, of) for make in tables]) for tables in (resampled, relabelled))
        found[name] = _entry(unit, _number(lambda: table, of), ci, null)
    return found


def _identification(ranks: RankSet, replicates: int, seed: int) -> dict[str, Any]:
    """Return identification rate and mean disclosure with intervals and null readings."""
    ranked: Ranks = rank_inputs(ranks)
    total = ranked.histogram()
    ci, null = np.zeros((0, total.size)), np.zeros((0, total.size))
    if replicates:
        speakers, histograms = speaker_histograms(ranked)
        ci = bootstrap_weights(len(speakers), replicates, seed) @ histograms
        everyone = np.ones((total.size, total.size), dtype=np.bool_)
        null = permuted_histograms(ranks, np.stack(list(permutations(everyone, replicates, seed))))
    found: dict[str, Any] = {"references": ranks.n_references, "inputs": ranks.n_inputs}
    return found | _entries(("identification_rate", "rank_mean"), total, ci, null)


def _number(make: Any, of: Any) -> float:
    try:
        return float(of(make()))
    except UndefinedMetricError:
        return float("nan")


def _bounds(replicates: FloatArray) -> list[float] | None:
    found = interval(replicates).bounds
    return None if found is None else list(found)
