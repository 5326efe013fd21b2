"""Stage train_content on made speech."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.made_phones import run_trained, write_phone_corpus

from voxveil.corpus.phones import PHONES
from voxveil.features.content.extractor import ContentExtractor
from voxveil.privacy import SystemNoise
from voxveil.runtime.errors import IncompleteInputError

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_phone_corpus(folder)
    return folder


def test_it_recognises_the_phones_of_unheard_speakers(corpus: Path, tmp_path: Path) -> None:
    model = run_trained("train_content", "plain", corpus, tmp_path)
    metrics = json.loads((model / "metrics.json").read_text())
    assert metrics["train_content/frame_accuracy"] > 0.6 > metrics["train_content/frame_accuracy_chance"]
    assert metrics["train_content/held_out_utterances"] == 6
    description = json.loads((model / "model.json").read_text())
    assert tuple(description["phones"]) == PHONES and description["reach_frames"] == 4
    assert description["loss"]["epsilon"] == "inf" and description["loss"]["unit"] == "vector"
    rows = list(csv.DictReader((model / "curve.csv").read_text().splitlines()))
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    assert ContentExtractor.load(model).phones == PHONES


@pytest.mark.parametrize(
    ("variant", "named"),
    [
        ({"mechanism": "laplace", "epsilon": 10.0}, "laplace_l1"),
        ({"mechanism": "subset_selection", "epsilon": 1.0}, "subset_selection"),
        ({"mechanism": "gaussian", "rho": 0.1}, "gaussian_l2"),
    ],
)
def test_a_private_variant_states_its_loss(
    corpus: Path, tmp_path: Path, variant: dict[str, Any], named: str
) -> None:
    sections = {"train_content": {"steps": 3}, "content_variants": {"plain": {}, "dp": variant}}
    model = run_trained("train_content", "dp", corpus, tmp_path, **sections)
    loss = json.loads((model / "model.json").read_text())["loss"]
    assert (loss["mechanism"], loss["unit"], loss["sensitivity"]) == (named, "vector", 2.0)
    assert (loss["epsilon"], loss.get("rho")) == (variant.get("epsilon", "inf"), variant.get("rho"))
    # What a later stage loads is charged and released as the stage said.
    extractor = ContentExtractor.load(model)
    assert extractor.loss == loss
    released = extractor.release(np.zeros(8_000, np.float32), SystemNoise())
    assert released.loss.to_json() == loss and released.value.shape == (51, extractor.size)


def test_a_corpus_without_phones_stops_in_one_line(tmp_path: Path) -> None:
    write_phone_corpus(tmp_path / "corpus", phones=False)
    with pytest.raises(IncompleteInputError, match="no phone timing, and train-content needs it"):
        run_trained("train_content", "plain", tmp_path / "corpus", tmp_path / "out")
    assert not (tmp_path / "out" / "model").exists()
