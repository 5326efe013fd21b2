"""Files written before the modules moved into rooms are read by the code of today (tests/old_files)."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from made_speech import speak
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.anonymize.bundle import read_bundle
from voxveil.audio.frames import frame_count
from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.config.compose import to_mapping
from voxveil.config.upgrade import upgraded_text
from voxveil.privacy import open_register, read_ledgers
from voxveil.privacy.ledger import registered
from voxveil.privacy.totals import utterance_totals
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.done import file_sha256
from voxveil.runtime.s3 import S3Uri
from voxveil.tracking.find_runs import find_run
from voxveil.tracking.models.addresses import RegistryAddress
from voxveil.tracking.models.fetching import read_pointer
from voxveil.tracking.store import Store, resolve_store

OLD = Path(__file__).resolve().parents[1] / "old_files"
SAMPLES = 8_000
VECTORS = frame_count(SAMPLES)
#: Epsilon of an utterance of ``SAMPLES`` samples by bundle; what has no noise has no finite one.
BUNDLES = {
    "original": np.inf,
    "mcadams": np.inf,
    "copy": np.inf,
    "anon": np.inf,
    "anon_pc": np.inf,
    "farthest": np.inf,
    "gauss": np.inf,
    "anon_dp": 10 + 10 * VECTORS,
    "naive": 10 + 10 * VECTORS,
    "contour": 1 + 1 * ((VECTORS + 1) // 2),
    "subset": 10 + 1 * VECTORS,
}


def unpack(archive: Path, target: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    return target


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(OLD / "bundles.tar.xz", tmp_path_factory.mktemp("old") / "bundles")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the old MLflow store."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "DVC_ROOT", "VOXVEIL_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    unpack(OLD / "mlartifacts.tar.xz", folder)
    script = gzip.decompress((OLD / "mlflow.sql.gz").read_bytes()).decode()
    assert "@PROJECT@" in script
    with sqlite3.connect(folder / "mlflow.db") as database:
        database.executescript(script.replace("@PROJECT@", str(folder)))
    database.close()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(project: Path) -> Store:
    return resolve_store({"DVC_ROOT": str(project)})


def test_every_old_bundle_is_in_the_table(bundles: Path) -> None:
    assert {path.name for path in bundles.iterdir()} == set(BUNDLES)


@pytest.mark.torch
@pytest.mark.parametrize("name", BUNDLES)
def test_an_old_bundle_anonymizes(bundles: Path, name: str) -> None:
    anonymizer = Anonymizer.load(bundles / name)
    assert anonymizer.bundle.system == name
    audio, f0 = speak(120.0, SAMPLES)
    source = anonymizer.source_of(audio, "F")
    assert (source.voice is not None) == (name == "farthest")
    found = anonymizer.anonymize_private(audio, f0=f0, source=source)
    assert found.audio.shape == audio.shape
    assert np.array_equal(found.audio, audio) == (name == "original")
    assert np.isfinite(found.audio).all() and found.audio.std() > 0
    assert found.utterance.epsilon == pytest.approx(BUNDLES[name])
    if name == "gauss":
        assert found.utterance.rho == pytest.approx(10**2 / 2 + 0.01 * VECTORS)


@pytest.mark.torch
def test_the_command_continues_an_old_release(
    bundles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(OLD / "register", tmp_path / "register")
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    monkeypatch.chdir(tmp_path)
    soundfile.write(tmp_path / "a.wav", speak(120.0, SAMPLES)[0], 16_000)
    words = ["anonymize", "a.wav", "new", "--model", str(bundles / "anon_dp"), "--threads", "1"]
    assert main(words) == 0
    (release,) = read_ledgers(tmp_path / "new")
    assert release.entries[0].earlier == 2
    assert len(registered(open_register(str(tmp_path / "register")))) == 5
    capsys.readouterr()


def test_old_ledgers_agree_with_the_old_register(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(OLD)
    assert main(["ledger", "verify", "out", "--register", "register"]) == 0
    said = capsys.readouterr().out
    assert "4 releases, every record is sound" in said
    assert "4 ledger files agree with it" in said


def test_totals_of_an_old_register() -> None:
    releases = registered(open_register(str(OLD / "register")))
    assert sorted(release.system for release in releases) == ["anon", "anon_dp", "anon_dp", "gauss"]
    (total,) = utterance_totals(releases, system="anon_dp")
    assert (total.inputs, total.releases) == (("a.wav",), 2)
    assert total.epsilon == 2 * (10 + 10 * VECTORS)
    (total,) = utterance_totals(releases, system="gauss")
    assert total.rho == pytest.approx(10**2 / 2 + 0.01 * VECTORS)


def test_old_parameters_load_with_their_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (OLD / "params.yaml").read_text()
    old = text.replace("      epsilon: 10.0", "      epsilon: 3.5", 1).replace("factor: 48", "factor: 32")
    Path("params.yaml").write_text(old)
    assert main(["params", "check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "train_pitch.variants: is now pitch_variants; 'voxveil params upgrade'" in line
    assert main(["params", "upgrade"]) == 0
    params = load_params(Path("params.yaml"))
    assert (params.base.scale, params.base.seed) == ("quickstart", 18)
    assert params.pitch_variants["dp"].epsilon == 3.5 and params.content_variants["dp"].epsilon == 10
    assert params.train_content.factor == 32
    assert {"original", "anon", "anon_dp"} <= set(params.systems)
    assert Path("params.yaml.bak").read_text() == old


#: Knobs that no old file has, with their defaults.
ADDED = {
    "train_attacker": {"pretrained": "", "finetune_steps": 200, "finetune_learning_rate": 1e-4},
    "train_vocoder": {"pretrained": ""},
    "transcribe": {"recognizer": "", "language": "en", "naturalness": ""},
}


@pytest.mark.parametrize("name", ["params.yaml", "params_long.yaml"])
def test_every_value_of_an_old_file_survives_its_upgrade(root: Path, tmp_path: Path, name: str) -> None:
    """Change every value that can be changed by itself, each to another one that is allowed."""
    shutil.copytree(root / "params", tmp_path / "params")
    content = yaml.safe_load((OLD / name).read_text())
    changed = 0
    for section, knobs in content.items():
        for knob, value in knobs.items() if section != "systems" else ():
            if isinstance(value, bool):
                knobs[knob] = not value
            elif isinstance(value, int) and knob not in ("width", "heads", "kernel", "gpus", "discriminator"):
                knobs[knob] = value + 1 if knob != "score_shards" else 3
            elif isinstance(value, float):
                knobs[knob] = value + 0.015625 if value <= 0.875 else value - 0.015625
            else:
                continue
            changed += 1
        for variant in knobs.get("variants", {}).values():
            if variant["mechanism"] == "laplace":
                variant["epsilon"] = 0.7
    assert changed > 90
    del content["systems"]["anon_pc"]
    content["systems"]["mine"] = {**content["systems"]["anon_dp"], "target_level": "speaker"}
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.write_text(upgraded_text(path))
    wanted = {
        **content,
        "pitch_variants": content["train_pitch"].pop("variants"),
        "content_variants": content["train_content"].pop("variants"),
    }
    for section, knobs in ADDED.items():
        wanted[section] = {**content[section], **knobs}
    assert to_mapping(load_params(path)) == wanted
    assert len(path.read_text().splitlines()) < len((OLD / name).read_text().splitlines())
    assert upgraded_text(path) == path.read_text()


def test_an_old_run_is_found_in_mlflow(store: Store, project: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    results = find_run("old-dusk", store, project, scratch)
    assert results.label == "old-dusk"
    assert {summary["system"] for summary in results.systems} == {"original", "anon", "anon_dp"}
    assert find_run(results.run_id, store, project, scratch).systems == results.systems


def test_an_old_run_is_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old-dusk", "old-dusk"]) == 0
    assert "anon_dp" in capsys.readouterr().out


def test_an_old_registered_model_is_read(store: Store, bundles: Path) -> None:
    pointer = read_pointer(RegistryAddress.parse("models:/anonymizer@champion"), store)
    assert pointer.system == "anon_dp"
    assert pointer.address == S3Uri("models", "old/anon_dp")
    assert pointer.digest == file_sha256(bundles / "anon_dp" / SUMS)
    assert read_pointer(RegistryAddress.parse("models:/anonymizer/1"), store) == pointer


def test_an_old_registered_model_comes_from_the_old_cache(
    project: Path, bundles: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = file_sha256(bundles / "anon_dp" / SUMS)
    shutil.copytree(bundles / "anon_dp", project / "cache/models" / digest)
    monkeypatch.setenv("VOXVEIL_CACHE", str(project / "cache"))
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 0
    assert digest in capsys.readouterr().out
    assert read_bundle(project / "cache/models" / digest).system == "anon_dp"
