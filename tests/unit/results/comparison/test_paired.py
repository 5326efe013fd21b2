"""Paired intervals against a literal bootstrap, and when there must be none."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from voxveil.metrics.data import CountTable
from voxveil.metrics.eer import eer
from voxveil.metrics.intervals import bootstrap_weights
from voxveil.results.comparison.differences import NotPairedError, paired_intervals, read_scored
from voxveil.runtime.atomic import read_json

ATTACK = "ecapa/semi_informed"
REPLICATES = 60


def scored(run: Path, system: str = "anon_dp"):
    return read_scored(run / "outputs/score" / system / ATTACK)


def lines(run: Path, name: str, system: str = "anon_dp") -> list[list[str]]:
    path = run / "outputs/score" / system / ATTACK / name
    return [line.split() for line in path.read_text().splitlines()]


def oracle(first: Path, second: Path) -> tuple[float, float]:
    """EER of both runs on every draw of speakers, trial by trial."""
    speaker = dict(lines(first, "utt2spk"))
    trials = lines(first, "trials.txt")
    order = list(dict.fromkeys(speaker[u] for _, u, _ in trials))
    differences = []
    for weights in bootstrap_weights(len(order), REPLICATES, 0):
        drawn = dict(zip(order, weights, strict=True))
        values = []
        for run in (first, second):
            score = {(e, u): float(s) for e, u, s in lines(run, "scores.txt")}
            target: list[float] = []
            nontarget: list[float] = []
            for enrolment, utterance, label in trials:
                times = drawn[speaker[utterance]]
                if label == "nontarget":
                    times *= drawn[enrolment]
                (target if label == "target" else nontarget).extend([score[enrolment, utterance]] * times)
            values.append(100 * eer(CountTable.from_scores(np.array(target), np.array(nontarget))))
        differences.append(values[1] - values[0])
    return tuple(np.quantile(differences, [0.025, 0.975]))


def test_one_draw_serves_both_runs(first_run: Path, second_run: Path) -> None:
    got = paired_intervals(scored(first_run), scored(second_run), REPLICATES)
    assert got["eer"] == pytest.approx(oracle(first_run, second_run), abs=1e-9)
    assert set(got) == {"eer", "unlinkability", "zebra_expected", "identification_rate", "rank_mean"}


def test_a_run_does_not_differ_from_itself(first_run: Path) -> None:
    got = paired_intervals(scored(first_run), scored(first_run), REPLICATES)
    assert set(got.values()) == {(0.0, 0.0)}


def test_the_values_are_those_of_the_evaluate_stage(first_run: Path) -> None:
    summary = read_json(first_run / "outputs/evaluate/anon_dp/summary.json")
    stored = summary["attacks"][0]["metrics"]
    for name, value in scored(first_run).values().items():
        assert value == pytest.approx(stored[name]["value"], rel=1e-12), name


def test_other_trials_are_not_paired(first_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "attack"
    shutil.copytree(first_run / "outputs/score/anon_dp" / ATTACK, folder)
    for name in ("trials.txt", "scores.txt"):
        kept = (folder / name).read_text().splitlines()[:-8]
        (folder / name).write_text("\n".join(kept) + "\n")
    with pytest.raises(NotPairedError, match="trials are not the same"):
        paired_intervals(scored(first_run), read_scored(folder), REPLICATES)


def test_other_rank_inputs_are_not_paired(first_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "attack"
    shutil.copytree(first_run / "outputs/score/anon_dp" / ATTACK, folder)
    arrays = dict(np.load(folder / "rank.npz"))
    arrays["inputs"] = arrays["inputs"][::-1]
    np.savez(folder / "rank.npz", **arrays)
    got = paired_intervals(scored(first_run), read_scored(folder), REPLICATES)
    assert "eer" in got
    assert "rank_mean" not in got
