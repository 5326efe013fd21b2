"""The table and figures of an experiment, from probes made here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.cli.main import main
from voxveil.privacy import GaussianSphere, Identity, LaplaceCube, LaplaceSimplex
from voxveil.privacy.zcdp import approximate
from voxveil.research.probe.facts import Cost, accuracy_limit, sharp_fano_limit, spent
from voxveil.research.probe.gather import content_rows, experiment_lines, mean_of, read_probes, series
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError, InputError


def asi(accuracy: float) -> dict[str, Any]:
    bounds = [1 - accuracy - 0.05, 1 - accuracy + 0.05]
    return {"accuracy": accuracy, "p_asi": 1 - accuracy, "p_asi_ci95": bounds, "chance": 0.25, "limit": 0.9}


def content(
    mechanism: str, epsilon: float, every: int = 1, draw: int = 1, right: float = 50.0, rho: float = 0.0
) -> dict[str, Any]:
    loss = (Identity("vector") if math.isinf(epsilon) else LaplaceSimplex(epsilon)).loss_for((1, 8))
    loss = GaussianSphere(rho).loss_for((1, 8)) if rho else loss
    return {
        "format": 1,
        "kind": "content",
        "variant": f"{mechanism}-{every}-{epsilon:g}",
        "mechanism": mechanism,
        "every": every,
        "draw": draw,
        "phones": 40,
        "phone_frames": 8.0,
        "frame_chance": 0.2,
        "corpus": {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []},
        **spent([Cost(loss, 100), Cost(loss, 300)]),
        "frame_accuracy": {"all": {"value": right, "ci95": [right - 1, right + 1]}},
        "asi": asi(0.5),
    }


def pitch(mechanism: str, epsilon: float, draw: int = 1) -> dict[str, Any]:
    loss = (Identity("utterance") if math.isinf(epsilon) else LaplaceCube(epsilon)).loss_for((4, 100))
    found = {
        "format": 1,
        "kind": "pitch",
        "variant": f"{mechanism}-{epsilon:g}",
        "mechanism": mechanism,
        "draw": draw,
        "corpus": {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []},
        **spent([Cost(loss, 1)]),
        "correlation": {"value": 0.5, "ci95": [0.4, 0.6]},
        "tracks": [{"utterance": "u", "true": [0.0, 0.5, 0.6], "released": [0.4, 0.5, 0.6]}],
        "asi": asi(0.3),
    }
    if mechanism != "identity":
        found["correlation_floor"] = {"value": 0.1, "ci95": None}
    return found


def write(folder: Path, probes: list[dict[str, Any]]) -> Path:
    for index, probe in enumerate(probes):
        place = folder / str(index)
        place.mkdir(parents=True)
        write_json(place / "probe.json", probe)
        finish(place, f"probe_{probe['kind']}", probe["variant"])
    return folder


PROBES = [
    content("laplace", 10.0, draw=1, right=40.0),
    content("laplace", 10.0, draw=2, right=44.0),
    content("laplace", 3.0),
    content("identity", math.inf),
    content("randomized_response", 9.0, every=3),
    pitch("naive", 10.0),
    pitch("identity", math.inf),
]


def test_draws_are_averaged_and_mechanisms_ordered(tmp_path: Path) -> None:
    probes = read_probes(write(tmp_path, PROBES))
    rows = [line for line in experiment_lines(probes) if "10 ms" in line or "30 ms" in line]
    assert [row.split()[0] for row in rows] == ["identity", "laplace", "laplace", "randomized_response"]
    assert rows[1].split()[3] == "3" and rows[2].split()[3] == "10"
    assert "42.0 [39.0, 41.0]" in rows[2]
    assert "2,000" in rows[2], "the median utterance has 200 vectors"
    assert "∞" in rows[0]
    groups = series(probes, "content")
    assert [len(draws) for draws in groups["laplace", "10 ms"]] == [1, 2]
    assert mean_of(groups["laplace", "10 ms"][1], "frame_accuracy", "all", "value") == 42.0
    assert math.isnan(mean_of(groups["laplace", "10 ms"][1], "wer", "value"))


def test_the_command_writes_table_figures_and_every_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "probes", PROBES)
    assert main(["probe", "gather", str(folder), "--out", str(tmp_path / "out")]) == 0
    table = (tmp_path / "out/table.txt").read_text()
    assert capsys.readouterr().out == table
    assert len(json.loads((tmp_path / "out/results.json").read_text())["probes"]) == len(PROBES)
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("<img ") == 4 and "http" not in page.partition("<body>")[2]
    figures = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert figures == ["content_accuracy.png", "p_asi.png", "pitch_correlation.png", "pitch_tracks.png"]


def test_nothing_or_unfinished_or_mixed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncompleteInputError, match="no finished probe"):
        read_probes(tmp_path)
    folder = write(tmp_path / "mixed", [pitch("naive", 1.0), pitch("naive", 2.0)])
    other = {**pitch("naive", 2.0), "corpus": {"name": "other"}}
    write_json(folder / "1/probe.json", other)
    with pytest.raises(IncompleteInputError, match="changed after its stage finished"):
        read_probes(folder)
    finish(folder / "1", "probe_pitch", "naive-2")
    with pytest.raises(InputError, match="measured another corpus"):
        read_probes(folder)


def test_the_limit_is_that_of_the_utterance_that_says_most() -> None:
    costs = [Cost(LaplaceCube(100.0).loss_for((16, frames)), 1) for frames in (100, 350)]
    # g(t) ~ t^2 / 2: CK g(eps / 2CK) ~ eps^2 / 8CK, the largest for the shortest utterance.
    information = max(
        1600 * (100 / 3200 + math.expm1(-100 / 3200)), 5600 * (100 / 11200 + math.expm1(-100 / 11200))
    )
    assert accuracy_limit(costs, 124) == pytest.approx(1 / 124 + math.sqrt(information / 2))


@given(st.floats(0, 8), st.integers(2, 200))
def test_sharp_fano_solves_its_equation(information: float, candidates: int) -> None:
    limit = sharp_fano_limit(information, candidates)
    assert 1 / candidates - 1e-12 <= limit <= 1
    if 1e-6 < information < math.log(candidates) - 1e-6:
        grid = np.linspace(1 / candidates, 1, 20001)[:-1]
        kept = -grid * np.log(grid) - (1 - grid) * np.log(1 - grid) + (1 - grid) * math.log(candidates - 1)
        # The slow way: the last grid point that still leaves enough doubt.
        assert limit == pytest.approx(grid[kept >= math.log(candidates) - information].max(), abs=1e-4)


def test_gaussian_noise_has_columns_of_its_own_and_no_place_on_an_axis_of_epsilons() -> None:
    from voxveil.research.probe.experiment_figures import accuracy_figure

    pure = [content("identity", math.inf), content("laplace", 3.0)]
    gaussian = content("gaussian", math.inf, rho=0.01)
    rows = content_rows([*pure, gaussian])
    assert {len(row) for row in rows} == {len(content_rows(pure)[0]) + 2}
    named = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    shown = named["gaussian"]
    assert (shown["epsilon"], shown["utterance"], shown["zCDP rho"]) == ("none", "none", "0.01")
    # The median of 100 and 300 vectors, each with a rho of 0.01.
    expected = (approximate(1.0) + approximate(3.0)) / 2
    assert shown["utterance, epsilon at delta"] == f"{expected:.1f} at 1e-06"
    assert (named["laplace"]["zCDP rho"], named["identity"]["epsilon"]) == ("-", "∞")
    (axis,) = accuracy_figure([*pure, gaussian]).axes
    assert all("gaussian" not in str(line.get_label()) for line in axis.lines)
    assert any("laplace" in str(line.get_label()) for line in axis.lines)
