"""Stage bundle: what it refuses. What it makes is tested with train_synthesis and in test_bundle of unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_speech import write_models, write_params
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.stages.run import run_stage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_models(tmp_path / "models")
    write_params(tmp_path / "params.yaml")
    return tmp_path


def run(root: Path) -> None:
    folders = {
        "pitch": "pitch/dp",
        "content": "content/dp",
        "speaker": "speaker",
        "vocoder": "vocoder",
        "synthesis": "synthesis",
    }
    inputs = {name: root / "models" / folder for name, folder in folders.items()}
    keys = {"pitch": "dp", "content": "dp", "synthesis": "anon_dp"}
    for name, path in inputs.items():
        finish(path, f"train_{name}", keys.get(name))
    run_stage("bundle", root / "params.yaml", inputs, {"model": root / "out"}, key="anon_dp")


def test_equal_models_give_equal_bundles(root: Path) -> None:
    run(root)
    first = read_json(root / "out/_DONE.json")["digest"]
    run(root)
    assert read_json(root / "out/_DONE.json")["digest"] == first


def test_a_synthesis_that_does_not_name_its_corpus_is_refused(root: Path) -> None:
    path = root / "models/synthesis/model.json"
    facts = read_json(path)
    del facts["corpus"]
    write_json(path, facts)
    with pytest.raises(InputError, match=r"synthesis/model.json: corpus is missing"):
        run(root)
    assert not (root / "out").exists()


def test_a_missing_pool_is_named_and_nothing_is_left(root: Path) -> None:
    (root / "models/speaker/pool.npz").unlink()
    with pytest.raises(IncompleteInputError, match=r"pool.npz: missing"):
        run(root)
    assert not (root / "out").exists()
