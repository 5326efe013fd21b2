"""Results by sex against literal counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from voxveil.metrics.data import RankSet, ScoreSet
from voxveil.metrics.sexes import by_sex, ranks_within_sex, read_sexes, sex_disclosure, trials_by_sex
from voxveil.runtime.errors import InputError

NAMES = tuple(f"s{n}" for n in range(8))
SEX_OF = {name: "FM"[n % 2] for n, name in enumerate(NAMES)}


def drawn(sex_shift: float, own_shift: float = 1.0, inputs: int = 5, seed: int = 0) -> RankSet:
    """Return ranks in which scores rise by ``sex_shift`` within a sex and by ``own_shift`` for oneself."""
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(8), inputs)
    scores = rng.normal(0, 1, (len(own), 8))
    scores += sex_shift * (np.arange(8)[None] % 2 == own[:, None] % 2)
    scores[np.arange(len(own)), own] += own_shift
    return RankSet(scores, own, NAMES)


def test_trials_are_parted_by_sex() -> None:
    ranks = drawn(1.0)
    parts = trials_by_sex(ranks.pairs(), ranks, SEX_OF)
    assert {name: part.is_target.size for name, part in parts.items()} == {
        "same_sex": 160,
        "F": 80,
        "M": 80,
        "pooled": 320,
    }
    assert all(part.is_target.sum() == (20 if name in "FM" else 40) for name, part in parts.items())


def test_same_sex_trials_are_pooled_through_the_ranks() -> None:
    ranks = drawn(1.0)
    same = trials_by_sex(ranks.pairs(), ranks, SEX_OF)["same_sex"]
    parts = trials_by_sex(same, ranks, SEX_OF)
    assert parts["pooled"].is_target.size == 320
    assert trials_by_sex(same, None, SEX_OF)["pooled"] is None
    unnamed = ScoreSet(same.scores, same.is_target, same.enrol_speaker, same.test_speaker, 8)
    assert trials_by_sex(unnamed, ranks, SEX_OF) == {}


def test_sex_makes_pooled_trials_easier() -> None:
    ranks = drawn(4.0)
    found = by_sex(ranks.pairs(), ranks, SEX_OF, replicates=30, seed=1)
    rates = {name: part["eer"]["value"] for name, part in found["trials"].items()}
    assert rates["pooled"] < rates["same_sex"] - 5
    for name in ("same_sex", "pooled"):
        part = found["trials"][name]
        low, high = part["eer"]["ci95"]
        assert low <= part["eer"]["value"] <= high
        assert part["eer"]["null95"][1] > part["eer"]["value"]
    assert found["sex"]["bits"]["value"] > 0.8


def test_ranks_within_a_sex_are_literal() -> None:
    ranks = drawn(5.0)
    within = ranks_within_sex(ranks, SEX_OF)
    for sex, part in within.items():
        columns = [n for n, name in enumerate(NAMES) if SEX_OF[name] == sex]
        rows = [i for i, n in enumerate(ranks.speaker_index) if n in columns]
        assert part.speakers == tuple(NAMES[n] for n in columns)
        for row, i in zip(part.scores, rows, strict=True):
            assert row.tolist() == ranks.scores[i, columns].tolist()
        assert [part.speakers[n] for n in part.speaker_index] == [NAMES[ranks.speaker_index[i]] for i in rows]
    assert ranks_within_sex(ranks, {**SEX_OF, **dict.fromkeys(NAMES[1::2], "F"), "s1": "M"})["M"] is None


def literal_sex(ranks: RankSet) -> float:
    """Return the share of inputs whose own sex scores higher on average, themselves left out."""
    right = 0.0
    for row, own in zip(ranks.scores, ranks.speaker_index, strict=True):
        same = [row[n] for n in range(8) if n != own and n % 2 == own % 2]
        other = [row[n] for n in range(8) if n % 2 != own % 2]
        gap = np.mean(same) - np.mean(other)
        right += 1.0 if gap > 0 else 0.5 if gap == 0 else 0.0
    return 100 * right / len(ranks.speaker_index)


@pytest.mark.parametrize("shift", [0.0, 0.7, 3.0])
def test_disclosure_of_sex_is_literal(shift: float) -> None:
    ranks = drawn(shift)
    found = sex_disclosure(ranks, SEX_OF, replicates=50, seed=1)
    share = literal_sex(ranks) / 100
    assert found["correct"]["value"] == pytest.approx(100 * share)
    expected = sum(p * np.log2(2 * p) for p in (share, 1 - share) if p)
    assert found["bits"]["value"] == pytest.approx(expected)
    low, high = found["correct"]["null95"]
    assert (low <= 100 * share <= high) is (shift == 0.0)


def test_the_own_score_does_not_tell_sex() -> None:
    """Who is recognized perfectly, but for nothing that their sex shares, discloses no sex."""
    found = sex_disclosure(drawn(0.0, own_shift=50.0), SEX_OF, replicates=50, seed=1)
    low, high = found["correct"]["null95"]
    assert low <= found["correct"]["value"] <= high


def test_constant_scores_disclose_nothing() -> None:
    ranks = RankSet(np.zeros((8, 8)), np.arange(8), NAMES)
    found = sex_disclosure(ranks, SEX_OF, replicates=0, seed=1)
    assert (found["correct"]["value"], found["bits"]["value"]) == (50, 0)
    assert found["bits"]["ci95"] is None
    assert sex_disclosure(ranks, dict.fromkeys(NAMES, "F"), replicates=0, seed=1) is None


def test_a_table_of_sexes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "spk2gender"
    path.write_text("a f\nb M\nc female\n")
    assert read_sexes(path) == {"a": "F", "b": "M", "c": "F"}
    path.write_text("a f\nb x\n")
    with pytest.raises(InputError, match="spk2gender:2: sex must be f or m, got 'x'"):
        read_sexes(path)
    path.write_text("a f\na f\n")
    with pytest.raises(InputError, match="spk2gender:2: speaker a is there twice"):
        read_sexes(path)
