"""Results of another version, or edited ones, ended in tracebacks where a page was made of them.

The digest of a folder does not help here: an older version finished it well.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.results.report.results import read_summaries
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError

CHOSEN = {name: SYSTEMS[name] for name in ("original", "anon_dp")}
SUMMARY, METRICS = "summary.json", "ecapa-semi_informed.json"

Damage = Callable[[dict[str, Any]], Any]


def set_to(value: Any, *place: str | int) -> Damage:
    def damage(content: Any) -> None:
        for name in place[:-1]:
            content = content[name]
        content[place[-1]] = value

    return damage


def without(*place: str | int) -> Damage:
    def damage(content: Any) -> None:
        for name in place[:-1]:
            content = content[name]
        del content[place[-1]]

    return damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    make_outputs(root, CHOSEN, samples=False)
    for system in CHOSEN:
        evaluate(root, system)
    return root


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Path:
    for name in ("params.yaml", "outputs/evaluate"):
        source, target = whole / name, tmp_path / "project" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path / "project"


def damaged(project: Path, file: str, damage: Damage) -> None:
    folder = project / "outputs/evaluate/anon_dp"
    content = read_json(folder / file)
    damage(content)
    (folder / file).write_text(json.dumps(content))
    finish(folder, "evaluate", "anon_dp", "metrics")


def one_line(capsys: pytest.CaptureFixture[str], name: str, project: Path) -> str:
    out = project.parent / "out"
    capsys.readouterr()
    assert main(["reproduce", name, "--project", str(project), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not out.exists()
    return error


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        (SUMMARY, without("scale"), "scale is missing"),
        (SUMMARY, without("utility", "wer"), "utility.wer is missing"),
        (SUMMARY, without("attacks", 0, "metrics", "unlinkability"), "metrics.unlinkability is missing"),
        (SUMMARY, set_to(float("nan"), "attacks", 0, "metrics", "eer", "value"), "a finite number, got nan"),
        (SUMMARY, set_to([1], "attacks", 0, "metrics", "eer", "ci95"), "two finite numbers, got [1]"),
        (SUMMARY, set_to("odd", "attacks"), "attacks must be a list, got 'odd'"),
        (SUMMARY, set_to(None, "promise", "streams"), "promise.streams must be an object, got None"),
        (SUMMARY, set_to(-1, "promise", "streams", "pitch", "epsilon"), 'a number of 0 or more, or "inf"'),
        (SUMMARY, without("promise", "streams", "content"), "promises nothing of its content"),
        (SUMMARY, set_to(0, "attacks", 0, "trials", "target"), "target must be a whole number of 1 or more"),
        (SUMMARY, set_to([0, 0], "attacks", 0, "rank_histogram"), "a list of counts, not all 0, got [0, 0]"),
        (METRICS, without("metrics"), "metrics is missing"),
        (METRICS, without("metrics", "eer"), "metrics.eer is missing"),
        (METRICS, set_to(float("inf"), "metrics", "eer", "value"), "a finite number, got inf"),
        (METRICS, set_to("odd", "metrics", "eer"), "metrics.eer must be an object, got 'odd'"),
    ],
)
def test_what_is_odd_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], file: str, damage: Damage, said: str
) -> None:
    damaged(project, file, damage)
    error = one_line(capsys, "dp-fig7", project)
    assert said in error
    assert "anon_dp" in error and "run its evaluate stage again" in error


def test_the_report_refuses_it_too(project: Path) -> None:
    damaged(project, SUMMARY, without("utility", "per", "value"))
    with pytest.raises(IncompleteInputError, match=r"summary\.json: utility\.per\.value is missing"):
        read_summaries(project / "outputs/evaluate", CHOSEN)


def test_a_system_that_is_no_section_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "params.yaml").write_text("base: {scale: tiny}\nsystems: {original: null}\n")
    assert "systems.original must be a section, got None" in one_line(capsys, "dp-fig7", project)


@pytest.mark.parametrize("name", ["wcd-table3", "srd-fig4", "dp-fig7", "dp-appendix-c"])
def test_a_system_without_the_attack_is_not_left_out(
    project: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    damaged(project, SUMMARY, set_to("fusion", "attacks", 0, "attacker"))
    folder = project / "outputs/evaluate/anon_dp"
    (folder / METRICS).rename(folder / "fusion-semi_informed.json")
    finish(folder, "evaluate", "anon_dp", "metrics")
    assert "system anon_dp has no attack semi_informed" in one_line(capsys, name, project)


def test_a_rate_that_is_undefined_is_called_so(project: Path, tmp_path: Path) -> None:
    nothing = {"value": None, "unit": "%", "note": "undefined: no input", "ci95": None, "null95": None}
    for file in (SUMMARY, METRICS):
        place = ("attacks", 0) if file == SUMMARY else ()
        damaged(project, file, set_to(nothing, *place, "metrics", "identification_rate"))
    out = tmp_path / "out"
    assert main(["reproduce", "srd-fig4", "--project", str(project), "--out", str(out)]) == 0
    assert "anon_dp: undefined % identified among" in (out / "index.html").read_text(encoding="utf-8")


def test_a_name_of_digits_is_no_number(project: Path) -> None:
    content = read_json(project / "outputs/evaluate/anon_dp/summary.json")
    (project / "outputs/evaluate/anon_dp").rename(project / "outputs/evaluate/5")
    folder = project / "outputs/evaluate/5"
    (folder / SUMMARY).write_text(json.dumps({**content, "system": "5"}))
    finish(folder, "evaluate", "5", "metrics")
    scale = content["scale"]
    (project / "params.yaml").write_text(f"base: {{scale: {scale}}}\nsystems: {{5: {{}}, original: {{}}}}\n")
    out = project.parent / "out"
    assert main(["reproduce", "dp-fig7", "--project", str(project), "--out", str(out)]) == 0
