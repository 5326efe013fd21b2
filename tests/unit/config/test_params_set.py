"""``voxveil params set`` and ``explain``: one value in place, and what the schema knows of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.config import load_params


@pytest.fixture
def path(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of params.yaml in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(root / "params.yaml", tmp_path)
    return tmp_path / "params.yaml"


def test_set_changes_one_line_each_and_keeps_the_rest(path: Path) -> None:
    before = path.read_text().splitlines()
    changes = ["train_pitch.variants.dp.epsilon=3", "report.title=mine: a title", "base.seed=18"]
    assert main(["params", "set", changes[0], "report.title='mine: a title'", changes[2]]) == 0
    after = path.read_text().splitlines()
    assert len(before) == len(after)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 3
    params = load_params(path)
    assert (params.base.seed, params.report.title) == (18, "mine: a title")
    assert params.train_pitch.variants["dp"].epsilon == 3


@pytest.mark.parametrize("flow", [False, True])
def test_set_adds_a_key_that_the_file_lacks(path: Path, flow: bool) -> None:
    lines = path.read_text().splitlines(keepends=True)
    start = lines.index("base:\n")
    kept = [line for line in lines[start + 1 : start + 4] if "seed:" not in line]
    section = ["base: {scale: quickstart, threads: 2}\n"] if flow else ["base:\n", *kept]
    path.write_text("".join([*lines[:start], *section, *lines[start + 4 :]]))
    assert main(["params", "check"]) == 2
    assert main(["params", "set", "base.seed=5"]) == 0
    assert load_params(path).base.seed == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("base.sead=3", "base.sead: unknown parameter"),
        ("base.seed=-3", "base.seed: must be at least 0, got -3"),
        ("base.seed=x", "base.seed: must be a number, got 'x'"),
        ("base={seed: 3}", "base: is a section"),
        ("systems.new.kind=anonymized", "systems.new"),
        ("base.seed", "must be PATH=VALUE"),
    ],
)
def test_set_refuses_in_one_line_and_writes_nothing(
    path: Path, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    before = path.read_text()
    assert main(["params", "set", "report.title=mine", change]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert path.read_text() == before


def test_explain_shows_a_knob_a_section_and_all(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", "set", "train_pitch.gpus=2"]) == 0
    capsys.readouterr()
    assert main(["params", "explain", "train_pitch.gpus"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "type: whole number",
        "default: 1",
        "allowed: at least 1, at most 8",
        "in the file: 2",
    ]
    assert main(["params", "explain", "train_pitch.variants.dp.mechanism"]) == 0
    assert "in the file: laplace" in capsys.readouterr().out
    for key in ("base", "systems", "systems.anon", "train_pitch.variants"):
        assert main(["params", "explain", key]) == 0
    assert "  pitch = plain: its train_pitch variant" in capsys.readouterr().out
    assert main(["params", "explain"]) == 0
    assert "  base: What every stage shares." in capsys.readouterr().out
    assert main(["params", "explain", "train_pitch.gpuz"]) == 2
    assert "train_pitch.gpuz: unknown parameter; known here: " in capsys.readouterr().err
