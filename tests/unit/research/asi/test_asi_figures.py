"""Splits, intervals and the proven limit of the identification attack, against literal oracles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_identities import made_utterances, pooled_results
from voxveil.privacy.audit.bounds import clopper_pearson
from voxveil.privacy.audit.information import pinsker_accuracy_limit
from voxveil.research.asi.result import AsiResult, clustered_interval
from voxveil.research.asi.split import split_utterances
from voxveil.runtime.errors import InputError


def tail(hits: int, trials: int, share: float) -> float:
    """P(X >= hits), term by term."""
    return math.fsum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1)
    )


@pytest.mark.parametrize(("hits", "trials"), [(1, 9), (4, 9), (9, 9), (0, 9), (17, 124), (1, 124)])
def test_clopper_pearson_leaves_the_tails_it_says(hits: int, trials: int) -> None:
    low, high = (float(bound) for bound in clopper_pearson(hits, trials, 0.025))
    assert low == 0 if hits == 0 else tail(hits, trials, low) == pytest.approx(0.025)
    assert high == 1 if hits == trials else 1 - tail(hits + 1, trials, high) == pytest.approx(0.025)


@given(st.integers(2, 60), st.data())
def test_one_trial_a_speaker_is_clopper_pearson_itself(speakers: int, data: st.DataObject) -> None:
    hits = np.array(data.draw(st.lists(st.integers(0, 1), min_size=speakers, max_size=speakers)))
    found = clustered_interval(hits, np.ones(speakers, np.int64))
    exact = clopper_pearson(hits.sum(), speakers, 0.025)
    assert found == pytest.approx([float(bound) for bound in exact], abs=1e-9)


def test_speakers_who_are_always_or_never_found_count_once_each() -> None:
    hits, trials = np.array([1] * 8 + [0] * 32), np.ones(40, np.int64)
    once = clustered_interval(hits, trials)
    four = clustered_interval(4 * hits, 4 * trials)
    assert four[0] <= once[0] and once[1] <= four[1], "four draws of the same are no more speakers"
    assert four == pytest.approx(once, abs=0.01)
    nobody = clustered_interval(0 * hits, 4 * trials)
    assert nobody[0] == 0.0 and nobody[1] >= float(clopper_pearson(0, 40, 0.025)[1])


def test_the_interval_covers_when_speakers_differ() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(400):
        hits = rng.binomial(5, rng.beta(0.5, 2.0, 30))
        low, high = clustered_interval(hits, np.full(30, 5))
        covered += low <= 0.2 <= high
    assert covered >= 0.93 * 400


def made_result(hits: list[int], draws: int = 1) -> AsiResult:
    return AsiResult(np.array(hits), np.full(len(hits), draws), 10, [], draws)


def test_results_add_up_over_draws() -> None:
    both = pooled_results([made_result([1, 0, 1]), made_result([1, 1, 0])])
    assert (both.hits, both.trials, both.speakers, both.draws) == (4, 6, 3, 2)
    assert both.speaker_hits.tolist() == [2, 1, 1]
    again = pooled_results([both, made_result([0, 0, 0])])
    assert (again.hits, again.trials, again.draws) == (4, 9, 3)
    told = both.to_json()
    assert told["p_asi"] == pytest.approx(1 / 3) and told["chance"] == pytest.approx(1 / 3)
    assert told["p_asi_ci95"] == pytest.approx([1 - told["ci95"][1], 1 - told["ci95"][0]])
    with pytest.raises(InputError, match="same speakers"):
        pooled_results([made_result([1, 0]), made_result([1, 0, 1])])
    with pytest.raises(InputError, match="no result"):
        pooled_results([])


def test_mini_keeps_one_utterance_to_stop_by_and_one_to_test() -> None:
    utterances = {**made_utterances(5, 6), "few": ["few-0", "few-1", "few-2"]}
    split = split_utterances(utterances, full=False, seed=1)
    assert split.speakers == tuple(sorted(made_utterances(5, 6))) and split.left_out == 1
    for speaker in split.speakers:
        parts = [split.training[speaker], split.validation[speaker], split.test[speaker]]
        assert [len(part) for part in parts] == [4, 1, 1]
        assert sorted(item for part in parts for item in part) == sorted(utterances[speaker])
    assert split.labelled(split.test)[2] == (split.test["s02"][0], 2)


@pytest.mark.parametrize(("each", "sizes"), [(4, (2, 1, 1)), (14, (12, 1, 1)), (100, (80, 10, 10))])
def test_full_size_is_80_10_10(each: int, sizes: tuple[int, ...]) -> None:
    split = split_utterances(made_utterances(3, each), full=True, seed=1)
    for speaker in split.speakers:
        parts = (split.training[speaker], split.validation[speaker], split.test[speaker])
        assert tuple(len(part) for part in parts) == sizes
        assert len({item for part in parts for item in part}) == each


def test_the_split_of_a_speaker_depends_on_nobody_else() -> None:
    utterances = made_utterances(6, 5)
    whole = split_utterances(utterances, full=False, seed=1)
    part = split_utterances({s: utterances[s][::-1] for s in ("s04", "s01")}, full=False, seed=1)
    assert all(whole.test[s] == part.test[s] for s in part.speakers)
    other = split_utterances(utterances, full=False, seed=2)
    assert whole.test != other.test


def test_impossible_splits_are_refused() -> None:
    with pytest.raises(InputError, match="1 of 2 speakers have at least 4"):
        split_utterances({"a": list("1234"), "b": list("567")}, full=True, seed=1)
    with pytest.raises(InputError, match=r"utterance 3: stands twice \(a and b\)"):
        split_utterances({"a": list("1234"), "b": list("3567")}, full=True, seed=1)


@given(st.integers(2, 6), st.integers(2, 6), st.data())
@settings(max_examples=150)
def test_no_attacker_beats_the_limit(speakers: int, outputs: int, data: st.DataObject) -> None:
    """Any channel, speakers equally likely: the best guess, and what passes, by enumeration."""
    counts = data.draw(
        st.lists(
            st.lists(st.integers(1, 50), min_size=outputs, max_size=outputs),
            min_size=speakers,
            max_size=speakers,
        )
    )
    laws = [[Fraction(n, sum(row)) for n in row] for row in counts]
    mixture = [sum(law[y] for law in laws) / speakers for y in range(outputs)]
    passed = math.fsum(
        float(law[y] / speakers) * math.log(law[y] / mixture[y]) for law in laws for y in range(outputs)
    )
    best = sum(max(law[y] for law in laws) for y in range(outputs)) / speakers
    limit = pinsker_accuracy_limit(max(passed, 0.0), speakers)
    assert float(best) <= limit + 1e-12
    assert limit == pytest.approx(min(1.0, 1 / speakers + math.sqrt(max(passed, 0.0) / 2)))
