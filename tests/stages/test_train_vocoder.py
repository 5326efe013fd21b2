"""Stage train_vocoder on made speech."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from made_hifigan import WIDTH, old_names, published, write_generator
from made_speech import CORPUS, write_params, write_prepared
from voxveil.pretrained.importing import import_model
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.run import run_stage
from voxveil.synthesis.hifigan import HifiGan
from voxveil.synthesis.vocoder import Vocoder

pytestmark = pytest.mark.torch


def run(root: Path, name: str = "out") -> Path:
    run_stage(
        "train_vocoder",
        root / "params.yaml",
        {"public": root / "prepare/public"},
        {"model": root / name, "metrics": root / f"{name}.json", "curve": root / f"{name}.csv"},
    )
    return root / name


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_prepared(tmp_path / "prepare")
    write_params(tmp_path / "params.yaml")
    return tmp_path


def test_writes_a_model_that_loads_with_its_metrics_and_corpus(root: Path) -> None:
    model = run(root)
    assert Vocoder.load(model).size.channels == 8
    metrics = read_json(root / "out.json")
    assert 0 < metrics["train_vocoder/copy_mel_l1"] < 3
    assert metrics["train_vocoder/held_out_utterances"] == 3
    facts = read_json(model / "model.json")
    named = {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}
    assert facts["corpus"] == {**named, "dataset": None}
    rows = list(csv.DictReader((root / "out.csv").read_text().splitlines()))
    assert int(rows[-1]["step"]) == 6


def test_equal_runs_give_equal_bytes(root: Path) -> None:
    digests = [read_json(run(root, name) / "_DONE.json")["digest"] for name in ("one", "two")]
    assert digests[0] == digests[1]


def test_a_corpus_that_does_not_say_what_it_is_is_refused(root: Path) -> None:
    facts = read_json(root / "prepare/public/corpus.json")
    del facts["synthetic"]
    write_json(root / "prepare/public/corpus.json", facts)
    finish(root / "prepare/public", "prepare", None)
    with pytest.raises(InputError, match=r"corpus.json: synthetic must be true or false"):
        run(root)
    assert not (root / "out").exists()


def test_training_starts_from_an_imported_generator(root: Path) -> None:
    source = write_generator(root / "source", old_names(published()))
    model = import_model([str(source)], "hifigan", root / "hifigan", licence="MIT")
    knobs = {"kind": "nsf_gan", "channels": WIDTH, "discriminator": 4, "steps": 1, "learning_rate": 1e-9}
    write_params(root / "params.yaml", train_vocoder={**knobs, "pretrained": str(root / "hifigan")})
    trained = run(root)
    facts = read_json(trained / "model.json")["pretrained"]
    assert {name: facts[name] for name in model.facts()} == model.facts()
    assert {name.split(".")[0] for name in facts["lacks"]} == {"source", "mel_mean", "mel_sd"}
    last = dict(HifiGan.load(trained).named_parameters())["leave.parametrizations.weight.original0"]
    assert torch.allclose(last.cpu(), torch.full_like(last.cpu(), 1.5), atol=1e-6)


def test_a_generator_of_another_width_stops_before_training(root: Path) -> None:
    source = write_generator(root / "source", old_names(published()))
    import_model([str(source)], "hifigan", root / "hifigan", licence="MIT")
    write_params(root / "params.yaml", train_vocoder={"kind": "nsf_gan", "pretrained": str(root / "hifigan")})
    with pytest.raises(ParamsError, match=r"train_vocoder\.channels: got 8, must be 16"):
        run(root)
    assert not (root / "out").exists()
