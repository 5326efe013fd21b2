"""``voxveil attack`` on somebody else's speech, from folder to table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from made_external import write_challenge, write_external
from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.attack.external import running
from voxveil.cli.main import main
from voxveil.corpus.split import Speech

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SMALL = ("channels=8", "embedding=16", "steps=8", "batch=8", "crop_seconds=0.5", "codebook=8")
SIZES = [f"--set={each}" for each in SMALL]


def attack(folder: Path, out: Path, *more: str, attackers: str = "ecapa,phone_histogram") -> int:
    options = [f"--out={out}", f"--attackers={attackers}", "--replicates=20", "--threads=1", *SIZES, *more]
    return main(["attack", str(folder), *options])


def content(out: Path) -> dict:
    return json.loads((out / "result.json").read_text())


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_external(tmp_path_factory.mktemp("speech") / "mine")


def test_the_whole_matrix_with_fusion_and_table(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attack(mine, tmp_path, "--seeds=1", "--fuse=4", "--no-figures") == 0
    shown = capsys.readouterr().out
    (found,) = content(tmp_path)["sets"]
    rows = [(row["attacker"], row["scenario"]) for row in found["attacks"]]
    names = ("ecapa", "phone_histogram", "fusion")
    scenarios = {"original", "ignorant", "lazy_informed", "semi_informed"}
    assert {name for name, _ in rows} == set(names)
    assert all({s for n, s in rows if n == name} == scenarios for name in names)
    for row in found["attacks"]:
        assert set(row["by_sex"]["trials"]) == {"same_sex", "F", "M", "pooled"}
        assert row["metrics"]["eer"]["value"] is not None
        assert row["metrics"]["identification_rate"]["null95"] is not None
    assert set(found["independent"]) == scenarios
    full = json.loads((tmp_path / "results/mine/ecapa-semi_informed.json").read_text())
    assert set(full) == {"trials", "metrics", "warnings", "by_sex"}
    assert "bit if the 2 representations were independent" in shown
    assert "mine: 4 speakers, attackers trained on 6" in shown


def test_a_second_run_trains_and_scores_nothing(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--seeds=1", "--no-figures")
    assert attack(mine, tmp_path, *arguments, attackers="phone_histogram") == 0
    first = (tmp_path / "result.json").read_bytes()
    table = [line for line in capsys.readouterr().out.splitlines() if "training on" not in line]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("done already")

    monkeypatch.setattr(running, "train_attacker", refuse)
    monkeypatch.setattr(running, "run_scenarios", refuse)
    assert attack(mine, tmp_path, *arguments, attackers="phone_histogram") == 0
    assert (tmp_path / "result.json").read_bytes() == first
    assert capsys.readouterr().out.splitlines() == table


def test_what_was_stopped_goes_on_where_it_was(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, real = [], running.train_attacker

    def counting(kind: str, speech: Speech, setup: TrainingSetup, number: int):
        trained.append((setup.training, number))
        if len(trained) == 3:
            raise KeyboardInterrupt
        return real(kind, speech, setup, number)

    monkeypatch.setattr(running, "train_attacker", counting)
    options = ("--seeds=2", "--no-figures")
    assert attack(mine, tmp_path, *options, attackers="phone_histogram") == 130
    assert not (tmp_path / "result.json").exists()
    assert not (tmp_path / "scores").exists()
    assert attack(mine, tmp_path, *options, attackers="phone_histogram") == 0
    whole = [(state, number) for state in ("original", "anonymized") for number in (1, 2)]
    assert trained[:3] == whole[:3]
    assert trained[3:] == whole[2:], "what was finished is not trained again"


def test_other_parameters_attack_anew(mine: Path, tmp_path: Path) -> None:
    options = ("--seeds=1", "--no-figures")
    assert attack(mine, tmp_path, *options, attackers="phone_histogram") == 0
    scores = tmp_path / "scores/mine/phone_histogram/semi_informed/scores.txt"
    before = scores.read_bytes()
    assert attack(mine, tmp_path, *options, "--set=codebook=5", attackers="phone_histogram") == 0
    assert scores.read_bytes() != before


def test_seeds_two_and_three_where_the_first_did_not_converge(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A codebook of two sounds misses its bar on original speech, so every seed is tried in every row."""
    options = ("--no-figures", "--set=codebook=2")
    assert attack(mine, tmp_path, *options, attackers="phone_histogram") == 0
    shown = capsys.readouterr().out
    (found,) = content(tmp_path)["sets"]
    rows = {row["scenario"]: row for row in found["attacks"]}
    assert rows["original"]["metrics"]["eer"]["value"] > 12
    assert "phone_histogram did not converge on original and anonymized speech" in shown
    assert all(len(row["seed_eers"]) == 3 for row in rows.values())
    assert all(
        row["metrics"]["eer"]["value"] == pytest.approx(min(row["seed_eers"])) for row in rows.values()
    )
    assert "phone_histogram (best of 3)" in shown


def test_voiceprivacy_2026_pools_the_sexes_and_draws(tmp_path: Path) -> None:
    write_challenge(tmp_path / "vpc", year=2026)
    assert attack(tmp_path / "vpc", tmp_path / "out", "--seeds=1", attackers="phone_histogram") == 0
    figures = tmp_path / "out/figures/libri_dev"
    assert (figures / "matrix.png").read_bytes().startswith(b"\x89PNG")
    assert (figures / "phone_histogram/det.png").is_file()
    found = content(tmp_path / "out")
    assert found["notes"]
    row = found["sets"][0]["attacks"][0]
    trials = {name: part["trials"] for name, part in row["by_sex"]["trials"].items()}
    assert (trials["same_sex"]["nontarget"], trials["pooled"]["nontarget"]) == (12, 36)
    assert trials["F"]["target"] + trials["M"]["target"] == trials["pooled"]["target"] == 12


def test_errors_are_one_line(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (
        ["--attackers=wavlm"],
        ["--set=steps=none"],
        ["--set=depth=3"],
        ["--fuse=99"],
        ["--seeds=-1"],
    ):
        options = [f"--out={tmp_path / 'out'}", *more]
        assert main(["attack", str(mine), *options]) == 2, more
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, more
        assert not (tmp_path / "out/result.json").exists()


def test_it_knows_nothing_of_our_synthesis() -> None:
    code = (
        "import sys, importlib\n"
        "from voxveil.cli import attack\n"
        "for name in ('attackers.registry', 'attackers.ecapa', 'attackers.histograms', 'attackers.prosody',\n"
        "             'attackers.embedding', 'imported', 'external.running', 'external.layouts',\n"
        "             'external.attack_table'):\n"
        "    importlib.import_module(f'voxveil.attack.{name}')\n"
        "ours = ('synthesis', 'anonymize', 'privacy', 'features.extraction', 'features.pitch',\n"
        "        'features.content')\n"
        "print([name for name in ours if f'voxveil.{name}' in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
