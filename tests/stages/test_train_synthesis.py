"""Stages train_synthesis and bundle on made speech."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made_speech import SYSTEMS, write_models, write_params, write_prepared, write_speaker_model
from voxveil.anonymize.bundle import read_bundle
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import finish
from voxveil.stages.run import run_stage
from voxveil.synthesis.acoustic import AcousticModel

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_prepared(folder / "prepare")
    write_models(folder / "models")
    write_params(folder / "params.yaml")
    write_speaker_model(folder / "models/speaker")
    for stage in ("pitch", "content"):
        for variant in ("plain", "dp"):
            finish(folder / "models" / stage / variant, f"train_{stage}", variant)
    finish(folder / "models/vocoder", "train_vocoder", None)
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parts(root: Path, system: str) -> dict[str, Path]:
    chosen = SYSTEMS[system]
    return {
        "pitch": root / "models/pitch" / chosen.pitch,
        "content": root / "models/content" / chosen.content,
        "speaker": root / "models/speaker",
    }


def synthesis(root: Path, system: str, name: str = "synthesis") -> Path:
    out = root / name / system
    run_stage(
        "train_synthesis",
        root / "params.yaml",
        {"public": root / "prepare/public", **parts(root, system)},
        {"model": out, "metrics": root / f"{name}-{system}.json", "curve": root / f"{name}-{system}.csv"},
        key=system,
    )
    return out


def bundle(root: Path, system: str, synthesis_output: Path) -> Path:
    inputs = {**parts(root, system), "vocoder": root / "models/vocoder", "synthesis": synthesis_output}
    run_stage("bundle", root / "params.yaml", inputs, {"model": root / "bundles" / system}, key=system)
    return root / "bundles" / system


@pytest.mark.parametrize("system", ["anon", "anon_dp"])
def test_trains_on_released_features_and_bundles(root: Path, system: str) -> None:
    model = synthesis(root, system)
    assert AcousticModel.load(model).size.channels == 16
    metrics = read_json(root / f"synthesis-{system}.json")
    assert metrics["train_synthesis/mel_l1"] > 0
    assert 0 <= metrics["train_synthesis/voicing_accuracy"] <= 1
    losses = read_json(model / "model.json")["losses"]
    expected = 10.0 if system == "anon_dp" else "inf"
    assert losses["content"]["epsilon"] == losses["pitch"]["epsilon"] == expected
    packed = read_bundle(bundle(root, system, model))
    assert packed.system == system
    assert packed.corpus["name"] == "made"
    assert packed.target_members == 2


def test_equal_runs_give_equal_bytes(root: Path) -> None:
    digests = [read_json(synthesis(root, "anon_dp", name) / "_DONE.json")["digest"] for name in ("a", "b")]
    assert digests[0] == digests[1]


def test_the_original_needs_no_model_and_says_so(root: Path) -> None:
    model = synthesis(root, "original")
    assert {path.name for path in model.iterdir()} == {
        "_DONE.json",
        "model.json",
        "metrics.json",
        "curve.csv",
    }
    assert read_json(model / "model.json")["kind"] == "passthrough"
    assert read_bundle(bundle(root, "original", model)).original


def test_mcadams_needs_no_model_either_and_carries_its_coefficients(root: Path) -> None:
    model = synthesis(root, "mcadams")
    assert read_json(model / "model.json")["kind"] == "passthrough"
    packed = read_bundle(bundle(root, "mcadams", model))
    assert (packed.kind, packed.original, packed.coefficients) == ("mcadams", False, (0.5, 0.9))
    assert {path.name for path in packed.folder.iterdir()} == {"_DONE.json", "bundle.json", "SHA256SUMS"}


def test_copy_synthesis_carries_the_vocoder_and_promises_nothing(root: Path) -> None:
    model = synthesis(root, "copy")
    assert read_json(model / "model.json")["kind"] == "passthrough"
    packed = read_bundle(bundle(root, "copy", model))
    assert (packed.original, packed.kind) == (False, "copy_synthesis")
    names = {path.relative_to(packed.folder).as_posix() for path in packed.folder.rglob("*.*")}
    assert names == {"_DONE.json", "bundle.json", "vocoder/model.json", "vocoder/model.safetensors"}
    assert {loss.epsilon for loss in packed.rule.losses(100).values()} == {float("inf")}


def test_the_bundle_stage_imports_no_torch(root: Path) -> None:
    model = synthesis(root, "original")
    code = (
        "import sys; from pathlib import Path; from voxveil.stages.run import run_stage\n"
        "root = Path(sys.argv[1])\n"
        "names = {'pitch': 'pitch/plain', 'content': 'content/plain'}\n"
        "names |= {'speaker': 'speaker', 'vocoder': 'vocoder'}\n"
        "inputs = {k: root / 'models' / v for k, v in names.items()} | {'synthesis': Path(sys.argv[2])}\n"
        "run_stage('bundle', root / 'params.yaml', inputs, {'model': root / 'b'}, key='original')\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(root), str(model)], check=True)
