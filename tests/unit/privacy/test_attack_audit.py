"""Attack scores against the claim: matched trials, honest verdicts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from voxveil.cli.main import main
from voxveil.privacy import Ledger, write_ledger
from voxveil.privacy.audit.attack_audit import Trial, _matched, audit_attack
from voxveil.privacy.register import FolderRegister

from .ledger_entries import make_entry


def attack(distance: float, speakers: int = 40, per_speaker: int = 30) -> tuple[list[Trial], dict[str, int]]:
    """Trials of an attacker whose target scores lie ``distance`` above the others."""
    rng = np.random.default_rng(5)
    owners = [f"s{i}" for i in range(speakers)]
    utterances = [(f"{owner}-{j}", owner) for owner in owners for j in range(per_speaker)]
    vectors = {name: 100 + int(name.rpartition("-")[2]) % 3 for name, _ in utterances}
    trials = []
    for i, enrolment in enumerate(owners):
        for name, owner in utterances:
            if owner in (enrolment, owners[i - 1], owners[i - 2]):
                target = owner == enrolment
                trials.append(Trial(enrolment, name, target, float(rng.normal() + distance * target)))
    return trials, vectors


def test_an_attacker_beyond_the_claim_is_a_violation() -> None:
    trials, vectors = attack(6.0)
    finding = audit_attack(trials, vectors, dict.fromkeys(vectors, 1.0))
    assert finding.verdict == "violation"
    assert finding.bound is not None and 1.0 < finding.bound <= finding.limit


def test_a_blind_attacker_is_consistent_and_a_large_claim_vacuous() -> None:
    trials, vectors = attack(0.0)
    assert audit_attack(trials, vectors, dict.fromkeys(vectors, 1.0)).verdict == "consistent"
    assert audit_attack(trials, vectors, dict.fromkeys(vectors, 9.0)).verdict == "not auditable"
    finding = audit_attack(trials, vectors, dict.fromkeys(vectors, 701.0))
    assert finding.verdict == "vacuous" and "vacuous" in finding.text()
    unbounded = audit_attack(trials, vectors, dict.fromkeys(vectors, math.inf))
    assert unbounded.verdict == "vacuous" and unbounded.to_json()["epsilon"] == "inf"


def test_pairs_have_one_enrolment_one_frame_count_and_no_utterance_twice() -> None:
    trials, vectors = attack(1.0, speakers=7, per_speaker=5)
    pairs = _matched(trials, vectors, {"s1-0"})
    assert pairs
    for target, other in pairs:
        assert target.is_target and not other.is_target
        assert target.enrolment == other.enrolment
        assert vectors[target.utterance] == vectors[other.utterance]
    for side in zip(*pairs, strict=True):
        names = [trial.utterance for trial in side]
        assert len(set(names)) == len(names) and "s1-0" not in names
    assert pairs == _matched(trials[::-1], vectors, {"s1-0"})


def test_without_equal_frame_counts_nothing_is_claimed() -> None:
    trials = [Trial("a", "a-1", True, 1.0), Trial("a", "b-1", False, 0.0), Trial("b", "b-2", True, 1.0)]
    finding = audit_attack(trials, {"a-1": 1, "b-1": 2, "b-2": 3}, {"a-1": 1.0, "b-1": 1.0, "b-2": 1.0})
    assert finding.verdict == "not auditable" and finding.bound is None
    assert "equal frame count" in finding.text()


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Score, trial and ledger files of one attack."""
    trials, vectors = attack(2.0, speakers=6, per_speaker=4)
    label = {True: "target", False: "nontarget"}
    (tmp_path / "trials.txt").write_text(
        "".join(f"{t.enrolment} {t.utterance} {label[t.is_target]}\n" for t in trials)
    )
    (tmp_path / "scores.txt").write_text("".join(f"{t.enrolment} {t.utterance} {t.score}\n" for t in trials))
    ledger = Ledger.open(
        purpose="evaluation", system="anon_dp", register=FolderRegister(tmp_path / "register")
    )
    write_ledger(tmp_path, ledger.announce([make_entry(u, vectors=k) for u, k in vectors.items()]))
    return tmp_path


def test_the_command_reads_scores_trials_and_ledger(
    released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", "attack", "--ledger", str(released)]
    files = ["--scores", str(released / "scores.txt"), "--trials", str(released / "trials.txt")]
    assert main([*words, *files]) == 0
    assert "vacuous" in capsys.readouterr().out
    text = (released / "trials.txt").read_text()
    (released / "trials.txt").write_text(text + "s0 stranger nontarget\n")
    (released / "scores.txt").write_text((released / "scores.txt").read_text() + "s0 stranger 0.5\n")
    assert main([*words, *files]) == 2
    assert "utterance stranger" in capsys.readouterr().err
