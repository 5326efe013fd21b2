"""Figures 3, 5 and 6 of the DP paper from a finished experiment: numbers, sources, what is missing."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from voxveil.cli.main import main
from voxveil.privacy import Identity, LaplaceCube, LaplaceSimplex
from voxveil.research.probe.facts import Cost, spent
from voxveil.research.probe.pipeline import probe_folder
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish


def probe(kind: str, epsilon: float, draw: int, accuracy: float) -> dict[str, Any]:
    mechanism = "identity" if math.isinf(epsilon) else "laplace"
    unit, noisy = ("utterance", LaplaceCube) if kind == "pitch" else ("vector", LaplaceSimplex)
    loss = (Identity(unit) if math.isinf(epsilon) else noisy(epsilon)).loss_for((4, 100))
    found = {
        "format": 1,
        "kind": kind,
        "variant": f"{mechanism}-{epsilon:g}",
        "mechanism": mechanism,
        "draw": draw,
        "corpus": {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []},
        **spent([Cost(loss, 1 if kind == "pitch" else 100)]),
        "asi": {
            "accuracy": accuracy,
            "p_asi": 1 - accuracy,
            "p_asi_ci95": [1 - accuracy - 0.05, 1 - accuracy + 0.05],
            "chance": 0.25,
            "limit": 0.9,
        },
    }
    if kind == "pitch":
        found["correlation"] = {"value": accuracy / 2, "ci95": [accuracy / 4, accuracy]}
        found["tracks"] = [{"utterance": "u", "true": [0.0, 0.5, 0.6], "released": [0.4, 0.5, 0.6]}]
        if mechanism != "identity":
            found["correlation_floor"] = {"value": 0.1, "ci95": [0.0, 0.2]}
    else:
        found |= {"every": 1, "phones": 40, "phone_frames": 8.0, "frame_chance": 0.2}
        found["frame_accuracy"] = {"all": {"value": 50.0, "ci95": [49.0, 51.0]}}
    return found


@pytest.fixture
def features(tmp_path: Path) -> Path:
    folder = tmp_path / "features"
    rows = [(kind, epsilon, 1, 0.7) for kind in ("pitch", "content") for epsilon in (math.inf, 1.0)]
    for kind, epsilon, draw, accuracy in (*rows, ("content", 1.0, 2, 0.5)):
        made = probe(kind, epsilon, draw, accuracy)
        place = folder / probe_folder(kind, made["variant"], draw)
        place.mkdir(parents=True)
        write_json(place / "probe.json", made)
        finish(place, "probe", None)
    return folder


@pytest.mark.parametrize("name", ["dp-fig3", "dp-fig5", "dp-fig6"])
def test_every_number_is_traced_to_its_probe(features: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "page"
    assert main(["reproduce", name, "--features", str(features), "--out", str(out)]) == 0
    numbers = json.loads((out / "results.json").read_text())["numbers"]
    assert numbers
    for number in numbers:
        source = number["source"]
        if source["kind"] != "published":
            data = (features / source["place"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == source["sha256"]
    page = (out / "index.html").read_text()
    assert "http" not in page.replace("http-equiv", "") and str(features) not in page
    assert list((out / "figures").glob("*.png"))


def test_figure_5_shows_the_limits_of_words_where_they_were_computed(features: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "text").write_text("1 the cat sat\n2 a cat ran\n3 the dog ran\n")
    (tmp_path / "tested").write_text("1 the cat ran\n")
    given = ["--text", str(tmp_path / "text"), "--tested", str(tmp_path / "tested"), "--general", "none"]
    short = ["--longest", "4", "--drawn", "500", "--epsilon", "4", "9"]
    assert main(["probe", "words", *given, *short, "--out", str(features / "words")]) == 0
    out = tmp_path / "page"
    assert main(["reproduce", "dp-fig5", "--features", str(features), "--out", str(out)]) == 0
    assert (out / "figures/floor.png").is_file()
    content = json.loads((out / "results.json").read_text())
    numbers = {number["name"]: number for number in content["numbers"]}
    source = numbers["words/drawn/9/least"]["source"]
    assert source["place"] == "words/words.json"
    assert hashlib.sha256((features / source["place"]).read_bytes()).hexdigest() == source["sha256"]
    assert numbers["words/drawn/9/right"]["value"] <= numbers["words/drawn/9/most"]["value"] + 5
    assert any("limits are estimates" in table["caption"] for table in content["tables"])


def test_values_are_means_over_draws_beside_what_was_published(features: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "page"
    assert main(["reproduce", "dp-fig5", "--features", str(features), "--out", str(out)]) == 0
    content = json.loads((out / "results.json").read_text())
    numbers = {number["name"]: number for number in content["numbers"]}
    assert numbers["content/laplace-1/p_asi"]["value"] == pytest.approx(40.0)
    assert numbers["content/laplace-1/p_asi"]["interval95"] == pytest.approx([25.0, 35.0])
    assert numbers["content/identity-inf/published"]["value"] == 3.2
    assert numbers["pitch/identity-inf/published"]["value"] == 62
    rows = [row for table in content["tables"] for row in table["rows"]]
    assert ["laplace, ε = 1", "above 86"] in [[row[0], row[-1]] for row in rows]


def test_what_is_missing_is_said_in_one_line(
    features: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "page"
    assert main(["reproduce", "dp-fig5", "--features", str(tmp_path), "--out", str(out)]) != 0
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "no finished probe" in line and "--scale features-mini" in line
    assert main(["reproduce", "dp-fig5", "--size", "full", "--out", str(out)]) != 0
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--features DIR names" in line
    assert "made by DVC: voxveil probe run DIR --scale features --set prepare.source=CORPUS" in line
    use = "voxveil params use features --set prepare.source=CORPUS"
    assert f"by Kubeflow: {use} && voxveil pipeline submit --pipeline probe_features" in line
    assert not out.exists()
