"""train_attacker and score with several kinds, seeds and a fusion: from public speech to rows of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_voices import write_voices
from voxveil.config import parse_params
from voxveil.config.compose import params_text
from voxveil.corpus.trials import draw_trials, write_trials
from voxveil.metrics.attacked import evaluate_attack, independent_disclosure
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.done import finish
from voxveil.runtime.errors import ParamsError
from voxveil.stages.run import run_stage

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SIZES = {"channels": 8, "embedding": 8, "steps": 3, "batch": 4, "crop_seconds": 0.5, "codebook": 8}
SCENARIOS = {"ignorant", "lazy_informed", "semi_informed"}


def write_params(path: Path, **attacker: object) -> Path:
    content = {
        "base": {"threads": 1},
        "systems": {"original": {"kind": "original"}, "anon": {}},
        "pitch_variants": {"plain": {}},
        "content_variants": {"plain": {}},
        "train_attacker": {**SIZES, **attacker},
        "score": {"rank_inputs": 2},
    }
    path.write_text(params_text(parse_params(content)))
    return path


def train(params: Path, speech: Path, system: str, out: Path) -> Path:
    finish(speech, "anonymize", system, "attacker")
    outputs = {"model": out / "model", "metrics": out / "metrics.json", "curve": out / "curve.csv"}
    run_stage("train_attacker", params, {"attacker": speech}, outputs, key=system)
    return out / "model"


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    split = write_voices(tmp_path / "private/private", range(30, 36), 4, seconds=0.5)
    write_trials(tmp_path / "private/trials", draw_trials(split, 2, seed=1))
    finish(tmp_path / "private", "prepare", None)
    write_voices(tmp_path / "public/attacker", range(2), 1, seconds=0.1)
    finish(tmp_path / "public", "prepare", None)
    write_voices(tmp_path / "released", range(30, 36), 4, seconds=0.5)
    finish(tmp_path / "released", "anonymize", "anon")
    return tmp_path


def test_every_kind_attacks_in_every_scenario_and_the_fusion_too(private: Path) -> None:
    kinds = ("ecapa", "phone_histogram")
    params = write_params(private / "params.yaml", kinds=",".join(kinds), seeds=2, fusion_speakers=4)
    speech = private / "speech"
    write_voices(speech, range(8), 3, seconds=0.5)
    models = {system: train(params, speech, system, private / system) for system in ("original", "anon")}
    names = {path.name for path in models["anon"].iterdir() if path.is_dir()}
    assert names == {"ecapa", "ecapa.seed2", "phone_histogram", "phone_histogram.seed2"}
    trained = json.loads((models["anon"] / "ecapa/model.json").read_text())["speakers"]
    assert len(trained) == 4, "the other 4 are kept for the fusion"
    numbers = json.loads((private / "anon/metrics.json").read_text())
    assert set(numbers) == {"train_attacker/anon/accuracy", "train_attacker/anon/loss"}

    inputs = {"attacker": models["anon"], "original_attacker": models["original"]}
    inputs |= {name: private / name for name in ("released", "private", "public")}
    run_stage("score", params, inputs, {"scores": private / "scores"}, key="anon")
    found = []
    for kind in (*kinds, "fusion"):
        assert {path.name for path in (private / "scores" / kind).iterdir()} == SCENARIOS
        full, attack = evaluate_attack(
            private / "scores" / kind / "semi_informed", SuiteOptions(replicates=20)
        )
        assert set(full["by_sex"]["trials"]) == {"same_sex", "F", "M", "pooled"}
        assert len(attack.get("seed_eers", [])) == (0 if kind == "fusion" else 2)
        found.append(attack)
    assert independent_disclosure(found)["semi_informed"]["attackers"] == list(kinds)


def test_a_kind_without_steps_leaves_what_dvc_shows(private: Path) -> None:
    params = write_params(private / "params.yaml", kinds="phone_histogram")
    speech = private / "speech"
    write_voices(speech, range(4), 2, seconds=0.5)
    train(params, speech, "anon", private / "anon")
    assert (private / "anon/curve.csv").read_text() == "step,loss\n0,0\n"
    assert json.loads((private / "anon/metrics.json").read_text()) == {}


def test_an_unknown_kind_stops_before_anything_is_trained(private: Path) -> None:
    params = write_params(private / "params.yaml", kinds="ecapa,resnet")
    speech = private / "speech"
    write_voices(speech, range(4), 2, seconds=0.5)
    with pytest.raises(ParamsError, match=r"train_attacker\.kinds: no attacker 'resnet'"):
        train(params, speech, "anon", private / "anon")
    assert not (private / "anon/model").exists()
