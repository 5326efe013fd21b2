"""The gate on finished runs: the bootstrap behind it, and the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from made_outputs import Made, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.metrics.data import CountTable
from voxveil.metrics.intervals import bootstrap_weights
from voxveil.metrics.linkability import linkability
from voxveil.results.comparison.differences import NotPairedError
from voxveil.results.gate.evidence import paired_losses

ATTACK = "ecapa/semi_informed"
ORIGINAL = Made(4.0, per=20.0, kind="original")
REPLICATES = 60


def finished(root: Path, leak: float, *, per: float = 30.0, epsilon: float = 10.0, **options: int) -> Path:
    """Return a run whose system leaks so much; equal seeds give equal noise, so only the leak differs."""
    systems = {"original": ORIGINAL, "anon_dp": Made(leak, pitch=epsilon, content=epsilon, per=per)}
    make_outputs(root, systems, samples=False, **options)
    for name in systems:
        evaluate(root, name)
    return root


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "reference": finished(tmp_path_factory.mktemp("reference"), 0.5),
        "close": finished(tmp_path_factory.mktemp("close"), 0.52),
        "leaky": finished(tmp_path_factory.mktemp("leaky"), 2.0),
        "garbled": finished(tmp_path_factory.mktemp("garbled"), 0.5, per=40.0),
        "weaker": finished(tmp_path_factory.mktemp("weaker"), 0.5, epsilon=20.0),
        "others": finished(tmp_path_factory.mktemp("others"), 0.5, utterances=5),
    }


@pytest.fixture(autouse=True)
def own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))


def gate(runs: dict[str, Path], candidate: str, *words: str, out: Path | None = None) -> int:
    arguments = ["gate", str(runs[candidate] / "outputs/evaluate"), "--system", "anon_dp"]
    arguments += ["--params", str(runs[candidate] / "params.yaml"), *words]
    return main([*arguments, *(["--out", str(out)] if out else [])])


def against(runs: dict[str, Path], name: str = "reference") -> list[str]:
    folder = str(runs[name] / "outputs/evaluate")
    return ["--reference", folder, "--champion", folder]


def test_one_draw_of_speakers_serves_both(runs: dict[str, Path]) -> None:
    """Linkability of both runs on every draw, trial by trial, and identification by counting."""
    folders = [runs[name] / "outputs/score/anon_dp" for name in ("reference", "leaky")]
    got = paired_losses(*folders, [ATTACK], REPLICATES)[ATTACK]
    speaker = dict(line.split() for line in (folders[0] / ATTACK / "utt2spk").read_text().splitlines())
    trials = [line.split() for line in (folders[0] / ATTACK / "trials.txt").read_text().splitlines()]
    order = list(dict.fromkeys(speaker[utterance] for _, utterance, _ in trials))
    expected: dict[str, list[float]] = {"linkability": [], "identification_rate": []}
    for weights in bootstrap_weights(len(order), REPLICATES, 0):
        drawn = dict(zip(order, weights, strict=True))
        values = [(oracle_linkability(f, trials, speaker, drawn), oracle_rate(f, drawn)) for f in folders]
        expected["linkability"].append(values[1][0] - values[0][0])
        expected["identification_rate"].append(values[1][1] - values[0][1])
    for name, differences in expected.items():
        assert got[name] == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])), abs=1e-9), name


def oracle_linkability(folder: Path, trials: list[list[str]], speaker: dict, drawn: dict) -> float:
    lines = [line.split() for line in (folder / ATTACK / "scores.txt").read_text().splitlines()]
    score = {(enrolment, utterance): float(value) for enrolment, utterance, value in lines}
    sides: dict[str, list[float]] = {"target": [], "nontarget": []}
    for enrolment, utterance, label in trials:
        times = drawn[speaker[utterance]] * (drawn[enrolment] if label == "nontarget" else 1)
        sides[label] += [score[enrolment, utterance]] * times
    return linkability(CountTable.from_scores(np.array(sides["target"]), np.array(sides["nontarget"])))


def oracle_rate(folder: Path, drawn: dict) -> float:
    arrays = np.load(folder / ATTACK / "rank.npz")
    hits = total = 0
    for row, label in zip(arrays["scores"], arrays["input_labels"], strict=True):
        total += drawn[str(label)]
        hits += drawn[str(label)] * (str(arrays["reference_labels"][np.argmax(row)]) == str(label))
    return 100 * hits / total


def test_a_reference_does_not_lose_against_itself(runs: dict[str, Path]) -> None:
    folder = runs["reference"] / "outputs/score/anon_dp"
    losses = paired_losses(folder, folder, [ATTACK], REPLICATES)[ATTACK]
    assert {name: tuple(bounds) for name, bounds in losses.items()} == {
        "identification_rate": (0, 0),
        "linkability": (0, 0),
        "d_ece": (0, 0),
    }


def test_a_slightly_worse_candidate_is_promoted(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Eight speakers are few: their margins must be wide for anything to pass.
    wide = runs["close"] / "wide.yaml"
    text = (runs["close"] / "params.yaml").read_text()
    wide.write_text(text.replace("gate:\n", "gate:\n  margin_identification_rate: 20.0\n"))
    out = tmp_path / "decision.json"
    assert gate(runs, "close", *against(runs), "--params", str(wide), out=out) == 0
    assert "FAILED" not in capsys.readouterr().out
    decision = json.loads(out.read_text())
    assert decision["promote"] is True
    assert decision["reason"].startswith("promoted: attacked by ecapa/semi_informed")


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        ("leaky", "loss in linkability (ecapa/semi_informed) against the reference"),
        ("garbled", "phone errors 40 %, the champion's 30 %: beyond the margin of 2 points"),
        ("weaker", "epsilon 20 per utterance, the champion's epsilon 10 per utterance: epsilon is larger"),
        ("others", "the trials are not the same"),
    ],
)
def test_a_candidate_that_must_not_pass_is_kept_and_told_why(
    candidate: str, why: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "decision.json"
    assert gate(runs, candidate, *against(runs), out=out) == 4
    printed = capsys.readouterr().out
    assert why in printed.splitlines()[-1]
    decision = json.loads(out.read_text())
    assert decision["promote"] is False
    assert why in decision["reason"]


def test_without_a_champion_the_bars_decide(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(runs, "leaky") == 4
    assert "no champion: upper end of identification rate" in capsys.readouterr().out


def test_scores_that_are_not_at_hand_keep(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["reference"] / "outputs/evaluate", tmp_path / "alone/evaluate")
    words = [
        "--reference",
        str(tmp_path / "alone/evaluate"),
        "--champion",
        str(runs["reference"] / "outputs"),
    ]
    words[-1] = str(runs["reference"])
    assert gate(runs, "close", *words) == 4
    assert "the scores of the reference are not at hand" in capsys.readouterr().out


def test_an_unknown_system_is_named(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*against(runs), "--champion-system", "anon_x"]
    assert gate(runs, "close", *words) == 2
    assert "has no system 'anon_x'; it has: anon_dp, original" in capsys.readouterr().err


def test_missing_scores_are_said_without_a_name(tmp_path: Path, runs: dict[str, Path]) -> None:
    with pytest.raises(NotPairedError, match="ecapa/semi_informed: the scores of both are needed"):
        paired_losses(tmp_path, runs["close"] / "outputs/score/anon_dp", [ATTACK], REPLICATES)
