"""What the papers compute exactly: the simulation and the two PAV examples; and the command around them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from made_pages import Reader, numbers
from voxveil.cli.main import main
from voxveil.research.papers import simulation
from voxveil.research.papers.catalogue import ITEMS, maker
from voxveil.research.papers.pav_examples import exact_eer, exact_worst
from voxveil.research.papers.simulation import hull_eer
from voxveil.runtime.done import require_done


def pav_by_hand(labels: list[int]) -> list[float]:
    """Pool adjacent violators one pair at a time, ZEBRA's pseudo-labels around; return each LLR."""
    bins = [[label, 1 - label] for label in (1, 0, *labels, 1, 0)]
    place = 0
    while place < len(bins) - 1:
        (t, f), (t2, f2) = bins[place], bins[place + 1]
        if t * (t2 + f2) >= t2 * (t + f):
            bins[place : place + 2] = [[t + t2, f + f2]]
            place = max(0, place - 1)
        else:
            place += 1
    return [math.log(t / f) for t, f in bins]


def eer_by_hand(labels: list[int]) -> float:
    targets, others = sum(labels), len(labels) - sum(labels)
    rates = [
        (sum(labels[:cut]) / targets, sum(1 - each for each in labels[cut:]) / others)
        for cut in range(len(labels) + 1)
    ]
    return min(((abs(miss - false), (miss + false) / 2) for miss, false in rates), key=lambda x: x[0])[1]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("repeats", [1, 2, 3, 5, 8])
def test_table_2_by_hand(first: int, repeats: int) -> None:
    labels = [(k + first) % 2 for k in range(6 * repeats)]
    assert max(map(abs, pav_by_hand(labels))) == pytest.approx(exact_worst(first), abs=1e-12)
    assert eer_by_hand(labels) == pytest.approx(exact_eer(first, repeats), abs=1e-12)


@pytest.fixture(scope="module")
def table_2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("table2") / "out"
    assert main(["reproduce", "wcd-table2", "--out", str(out)]) == 0
    return out


def test_table_2_literally(table_2: Path) -> None:
    found = {name: each["value"] for name, each in numbers(table_2).items()}
    for n in (1, 2, 5, 10, 100, 1001):
        assert found[f"example 1, n = {n}/max_abs_llr"] == pytest.approx(0.6931471805599453, abs=1e-12)
        assert found[f"example 2, n = {n}/max_abs_llr"] == 0
        for example in (1, 2):
            name = f"example {example}, n = {n}/eer"
            assert found[name] == pytest.approx(found[f"{name} exact"], abs=1e-9)
    assert found["example 1, n = 1/eer"] == pytest.approx(100 / 3)
    assert found["example 2, n = 1/eer"] == pytest.approx(200 / 3)
    assert found["example 1, n = 1001/eer"] == pytest.approx(50, abs=0.02)
    require_done(table_2, "out")


def test_table_2_is_that_of_the_reference(table_2: Path, root: Path) -> None:
    found = numbers(table_2)
    reference = root / "tests/unit/metrics/metric_reference.json"
    expected = json.loads(reference.read_text())["score_sets"]
    for example in (1, 2):
        right = expected[f"tiny_ex{example}"]["expected"]
        name = f"example {example}, n = 1/"
        assert found[f"{name}max_abs_llr"]["value"] == pytest.approx(
            right["max_abs_llr_laplace_zebra_nat"], abs=1e-9
        )
        assert found[f"{name}eer"]["value"] == pytest.approx(100 * right["eer_roc"], abs=1e-9)
        assert found[f"{name}eer_rocch"]["value"] == pytest.approx(100 * right["eer_rocch"], abs=1e-9)


def test_hull_of_the_simulation_by_hand() -> None:
    t = np.linspace(-6, 6, 24_001)
    false, miss = norm.sf(t), norm.cdf(t / 2)
    # Of all lines from (accept all) to a point of the curve the lowest is the hull's left part.
    slope = miss / (1 - false)
    lowest = slope[t > 0].min()
    assert hull_eer() == pytest.approx(100 * lowest / (1 + lowest), abs=1e-4)


def test_simulation_hides_evidence_behind_an_eer_of_50(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "DRAWS", 20)
    for name in ("wcd-fig1", "wcd-fig2"):
        assert main(["reproduce", name, "--out", str(tmp_path / name), "--seed", "3"]) == 0
    found, ratios = numbers(tmp_path / "wcd-fig1"), numbers(tmp_path / "wcd-fig2")
    low, high = found["draws/eer"]["interval95"]
    assert low < 50 < high
    low, high = found["draws/eer_rocch"]["interval95"]
    assert low < found["exact/eer_rocch"]["value"] < high
    assert found["draw/eps_max_gauss"]["value"] > 8
    assert ratios["score 4/true"]["value"] == pytest.approx(6 - math.log(2))
    assert ratios["score 4/Gauss"]["value"] == pytest.approx(6 - math.log(2), rel=0.1)
    assert ratios["score -4/PAV"]["value"] < 0
    assert "seed 3" in found["draw/eer"]["source"]["place"]


def test_page_needs_nothing_else(table_2: Path) -> None:
    text = (table_2 / "index.html").read_text()
    page = Reader(text)
    assert not {"script", "iframe", "object"} & {tag for tag, _ in page.tags}
    for _, attrs in page.tags:
        for key in ("src", "srcset", "href"):
            assert attrs.get(key, "data:").startswith("data:")
    assert "http" not in re.sub(r'"data:[^"]*"', "", text).replace("http-equiv", "")
    assert str(table_2) not in text
    words = " ".join(" ".join(page.text).split())
    for heading in ("Published and measured", "Why they differ", "Sources"):
        assert heading in words
    assert len(list((table_2 / "figures").glob("*.png"))) == text.count('src="data:image/png')


def test_same_command_gives_the_same_bytes_and_prints_the_table(
    table_2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["reproduce", "wcd-table2", "--out", str(tmp_path / "out")])
    assert require_done(tmp_path / "out", "again").digest == require_done(table_2, "first").digest
    assert "0.69315" in capsys.readouterr().out


def test_every_item_can_be_made_and_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "list"]) == 0
    listed = capsys.readouterr().out
    for name, item in ITEMS.items():
        assert callable(maker(item))
        assert item.needs in ("nothing", "features", "systems")
        assert (item.overlays == {}) == (item.needs == "nothing")
        assert f"{name} " in listed
        assert item.paper


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wcd-table9", "--out", "out"], "no item 'wcd-table9' to reproduce; there is: "),
        (["wcd-table2"], "--out DIR says where"),
        (["wcd-table2", "--out", "out", "--set", "base.seed=1"], "it needs --run"),
        (["wcd-table2", "--out", "out", "--replicates", "-1"], "must be 0 or more"),
    ],
)
def test_a_wrong_call_gives_one_line(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error
    assert not list(tmp_path.iterdir())
