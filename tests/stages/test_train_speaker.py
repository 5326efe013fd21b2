"""train_speaker and train_attacker: the two stages that train a speaker encoder."""

import json
from pathlib import Path

import numpy as np
import pytest

from made_voices import write_voices
from voxveil.config import parse_params
from voxveil.config.compose import params_text
from voxveil.features.speaker.pool import Pool
from voxveil.runtime.done import finish
from voxveil.stages.run import run_stage

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SIZES = {"channels": 16, "embedding": 16, "steps": 8, "batch": 8, "crop_seconds": 0.5}


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = {
        "base": {"threads": 1},
        "systems": {"original": {"kind": "original"}, "anon": {}},
        "pitch_variants": {"plain": {}},
        "content_variants": {"plain": {}},
        "train_speaker": {**SIZES, "target_members": 2},
        "train_attacker": SIZES,
    }
    path = tmp_path_factory.mktemp("params") / "params.yaml"
    path.write_text(params_text(parse_params(content)))
    return path


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public")
    write_voices(folder / "extractor", range(4), 3)
    write_voices(folder / "pool", range(10, 15), 2)
    write_voices(folder / "attacker", range(20, 24), 3)
    finish(folder, "prepare", None)
    return folder


def train_speaker(params: Path, public: Path, out: Path) -> Path:
    outputs = {"model": out / "model", "metrics": out / "metrics.json", "curve": out / "curve.csv"}
    run_stage("train_speaker", params, {"public": public}, outputs)
    return out / "model"


def test_train_speaker_writes_encoder_pool_curve_and_metrics(
    params: Path, public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = train_speaker(params, public, tmp_path / "one")
    names = sorted(path.name for path in model.iterdir())
    assert names == [
        "_DONE.json",
        "curve.csv",
        "metrics.json",
        "model.json",
        "model.safetensors",
        "pool.npz",
    ]
    pool = Pool.load(model / "pool.npz")
    assert len(pool) == 10
    assert sorted(set(pool.speakers.tolist())) == [f"s{n}" for n in range(10, 15)]
    assert pool.log_f0_mean[0] == pytest.approx(np.log(110.0))
    facts = json.loads((model / "model.json").read_text())
    assert facts["target_members"] == 2
    assert facts["pool"]["no_voiced_frames"] == []
    metrics = json.loads((tmp_path / "one" / "metrics.json").read_text())
    assert 0 <= metrics["train_speaker/pool_accuracy"] <= 1
    rows = (tmp_path / "one" / "curve.csv").read_text().splitlines()
    assert rows[0] == "step,accuracy,learning_rate,loss"
    assert len(rows) == 1 + 8

    again = train_speaker(params, public, tmp_path / "two")
    for name in names:
        assert (again / name).read_bytes() == (model / name).read_bytes()


def test_train_attacker_remembers_whom_and_what_it_was_trained_on(
    params: Path, public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    split = public / "attacker"
    states = {}
    for system in ("anon", "original"):
        finish(split, "anonymize", system, "attacker")
        out = tmp_path / system
        outputs = {"model": out / "model", "metrics": out / "metrics.json", "curve": out / "curve.csv"}
        run_stage("train_attacker", params, {"attacker": split}, outputs, key=system)
        facts = json.loads((out / "model" / "ecapa" / "model.json").read_text())
        assert facts["speakers"] == [f"s{n}" for n in range(20, 24)]
        states[system] = facts["training"]
        assert f"train_attacker/{system}/accuracy" in json.loads((out / "metrics.json").read_text())
    assert states == {"anon": "anonymized", "original": "original"}
