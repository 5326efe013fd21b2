"""Stage train_pitch on made speech."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.made_phones import run_trained, write_phone_corpus

from voxveil.features.pitch.extractor import PitchExtractor
from voxveil.privacy import SystemNoise

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_phone_corpus(folder)
    return folder


def metrics_of(folder: Path) -> dict[str, float]:
    return json.loads((folder / "metrics.json").read_text())


def test_the_identity_writes_its_model_and_exact_metrics(corpus: Path, tmp_path: Path) -> None:
    model = run_trained("train_pitch", "plain", corpus, tmp_path)
    metrics = metrics_of(model)
    assert metrics["train_pitch/correlation"] == pytest.approx(1.0)
    assert "train_pitch/correlation_floor" not in metrics
    extractor = PitchExtractor.load(model)
    assert extractor.loss["epsilon"] == "inf"


def test_a_private_variant_is_trained_measured_and_loads(corpus: Path, tmp_path: Path) -> None:
    model = run_trained("train_pitch", "dp", corpus, tmp_path)
    metrics = metrics_of(model)
    # Epsilon 10 over C K entries: what comes out is what pure noise gives.
    assert abs(metrics["train_pitch/correlation"]) < 0.3
    assert abs(metrics["train_pitch/correlation_floor"]) < 0.3
    assert metrics["train_pitch/held_out_utterances"] == 6
    description = json.loads((model / "model.json").read_text())
    assert (description["format"], description["mechanism"], description["epsilon"]) == (1, "laplace", 10.0)
    assert description["loss"]["unit"] == "utterance" and description["loss"]["sensitivity"] == "4 K"
    rows = list(csv.DictReader((model / "curve.csv").read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == list(range(1, 13)) and set(rows[0]) > {"loss", "correlation"}
    released = PitchExtractor.load(model).release([0.0, 120.0, 130.0], SystemNoise())
    assert released.value.shape == (3,) and released.loss.sensitivity == 12.0


def test_a_weak_mechanism_passes_the_melody(corpus: Path, tmp_path: Path) -> None:
    model = run_trained("train_pitch", "weak", corpus, tmp_path, train_pitch={"steps": 60})
    metrics = metrics_of(model)
    assert metrics["train_pitch/correlation"] > 0.9 > 0.5 > metrics["train_pitch/correlation_floor"]


def test_equal_runs_write_equal_bytes(corpus: Path, tmp_path: Path) -> None:
    first, second = (run_trained("train_pitch", "dp", corpus, tmp_path / name) for name in ("a", "b"))
    for name in ("model.safetensors", "model.json", "curve.csv", "metrics.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
