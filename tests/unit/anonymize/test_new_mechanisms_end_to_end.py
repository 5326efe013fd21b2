"""Bundles with subset selection or Gaussian noise on the content: anonymize, resume, ledger, registry."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import soundfile

from made_speech import CORPUS, speak, write_models
from voxveil.anonymize.bundle import read_bundle, write_bundle
from voxveil.cli.main import main
from voxveil.config.model import SystemParams
from voxveil.privacy.ledger import read_ledgers
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.tracking.models.contents import model_tags

VARIANTS = {
    "subset": {"mechanism": "subset_selection", "epsilon": 1.0},
    "gauss": {"mechanism": "gaussian", "epsilon": 0.0, "rho": 0.01},
    "gauss_strong": {"mechanism": "gaussian", "epsilon": 0.0, "rho": 0.5},
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    models = folder / "models"
    write_models(models)
    facts = {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}
    for name, variant in VARIANTS.items():
        shutil.copytree(models / "content/dp", models / "content" / name)
        path = models / "content" / name / "model.json"
        write_json(path, {**read_json(path), **variant})
        for pitch in ("dp", "plain"):
            parts = {part: models / part for part in ("speaker", "vocoder", "synthesis")}
            parts |= {"pitch": models / "pitch" / pitch, "content": models / "content" / name}
            target = folder / f"{name}_{pitch}"
            write_bundle(target, "mine", SystemParams(pitch=pitch, content=name), parts, facts)
            finish(target, "bundle", "mine")
    return folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    soundfile.write(tmp_path / "a.wav", speak(120.0, 8_000)[0], 16_000)
    return tmp_path


def run(bundle: Path, out: str = "out") -> int:
    return main(["anonymize", "a.wav", out, "--model", str(bundle), "--threads", "1"])


def test_gaussian_content_from_bundle_to_ledger(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles / "gauss_dp") == 0
    said = capsys.readouterr().out
    assert "a.wav: utterance zCDP rho 50.51, epsilon" in said and "nat at delta 1e-06, K = 51 vectors" in said
    assert "content: zCDP rho 0.01 per vector (gaussian_l2, L2 sensitivity 2.0)" in said
    assert "utterance zCDP rho = epsilon(pitch)^2 / 2 + K rho(content), no pure epsilon" in said
    assert soundfile.info(work / "out/a.flac").frames == 8_000
    (release,) = read_ledgers(work / "out")
    assert (release.to_json()["epsilon_max"], release.to_json()["rho_max"]) == ("inf", pytest.approx(50.51))
    assert run(bundles / "gauss_dp") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run(bundles / "gauss_strong_dp") == 2
    assert "content zCDP rho 0.01 per vector (gaussian_l2), now zCDP rho 0.5" in capsys.readouterr().err
    assert main(["ledger", "total"]) == 0
    said = capsys.readouterr().out
    assert "largest utterance total none (zCDP)" in said and "50.51" in said
    assert "1 utterances had Gaussian noise: they have a zCDP rho and no pure epsilon" in said
    assert main(["ledger", "verify", "out"]) == 0


def test_gaussian_content_beside_open_pitch_promises_nothing(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles / "gauss_plain") == 0
    assert "utterance epsilon unbounded (no promise)" in capsys.readouterr().out
    assert main(["ledger", "total", "--json"]) == 0
    (total,) = json.loads(capsys.readouterr().out)["utterances"]
    assert (total["epsilon"], total["rho"]) == ("inf", None)


def test_subset_selection_from_bundle_to_ledger(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles / "subset_dp") == 0
    said = capsys.readouterr().out
    assert "a.wav: utterance epsilon 61 nat, K = 51 vectors" in said
    assert "content: epsilon 1.0 per vector (subset_selection, L1 sensitivity 2.0)" in said
    assert main(["ledger", "show"]) == 0
    assert "zCDP" not in capsys.readouterr().out


def test_an_attack_is_not_audited_against_a_rho(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles / "gauss_dp") == 0
    (work / "trials.txt").write_text("m a.wav target\nn a.wav nontarget\n")
    (work / "scores.txt").write_text("m a.wav 1\nn a.wav 0\n")
    words = ["audit", "attack", "--scores", "scores.txt", "--trials", "trials.txt", "--ledger", "out"]
    capsys.readouterr()
    assert main(words) == 2
    assert "a.wav was released under zCDP, for which no pure epsilon holds" in capsys.readouterr().err


def test_a_bundle_and_its_registry_tags_say_which_measure(bundles: Path) -> None:
    bundle = read_bundle(bundles / "gauss_dp")
    assert read_json(bundle.folder / "bundle.json")["losses"]["content"]["measure"] == "zcdp"
    assert "no pure epsilon" in read_json(bundle.folder / "bundle.json")["utterance"]["rule"]
    tags = model_tags(bundle)
    assert (tags["measure.content"], tags["rho.content"], tags["epsilon.content"]) == ("zcdp", "0.01", "inf")
    assert (tags["measure.pitch"], tags["epsilon.pitch"]) == ("pure", "10") and "rho.pitch" not in tags
