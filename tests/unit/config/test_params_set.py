"""``voxveil params set`` and ``explain``: one value in place, and what the schema knows of it."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.config.sections import params_class, section_of
from voxveil.research.params import AsiParams


@pytest.fixture
def path(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of params.yaml in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(root / "params.yaml", tmp_path)
    return tmp_path / "params.yaml"


def test_set_changes_one_line_each_and_keeps_the_rest(path: Path) -> None:
    before = path.read_text().splitlines()
    changes = ["pitch_variants.dp.epsilon=3", "report.title=mine: a title", "base.seed=18"]
    assert main(["params", "set", changes[0], "report.title='mine: a title'", changes[2]]) == 0
    after = path.read_text().splitlines()
    assert len(before) == len(after)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 3
    params = load_params(path)
    assert (params.base.seed, params.report.title) == (18, "mine: a title")
    assert params.pitch_variants["dp"].epsilon == 3


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
        ("asi.stepz=3", "asi.stepz: unknown parameter"),
        ("asi.steps=0", "asi.steps: must be at least 1, got 0"),
        ("train_pitch.variants.dp.epsilon=3", "train_pitch.variants: is now pitch_variants"),
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
        "now: 2 (from params.yaml)",
    ]
    assert main(["params", "explain", "train_content.gpus"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "now: 1 (the default; not in params.yaml)"
    assert main(["params", "explain", "pitch_variants.dp.mechanism"]) == 0
    assert "now: laplace (from params.yaml)" in capsys.readouterr().out
    for key in ("base", "systems", "systems.anon", "pitch_variants"):
        assert main(["params", "explain", key]) == 0
    assert "  pitch = plain (params.yaml, default plain): its pitch variant" in capsys.readouterr().out
    assert main(["params", "explain"]) == 0
    assert "  base: What every stage shares." in capsys.readouterr().out
    assert main(["params", "explain", "train_pitch.gpuz"]) == 2
    assert "train_pitch.gpuz: unknown parameter; known here: " in capsys.readouterr().err
    assert main(["params", "explain", "train_pitch.variants"]) == 2
    assert "train_pitch.variants: is now pitch_variants" in capsys.readouterr().err


def test_explain_lists_every_knob_its_value_its_default_and_where_it_comes_from(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["params", "set", "asi.group=4"]) == 0
    capsys.readouterr()
    assert main(["params", "explain"]) == 0
    shown = capsys.readouterr().out
    lines = set(shown.splitlines())
    section, listed = "", set()
    for line in shown.splitlines():
        if line.startswith("    "):
            listed.add(f"{section}.{line.split()[0]}")
        else:
            section = line.split(":")[0].strip()
    knobs = {
        f"{field.name}.{knob.name}"
        for field in dataclasses.fields(params_class())
        if not isinstance(getattr(params_class()(), field.name), dict)
        for knob in dataclasses.fields(getattr(params_class()(), field.name))
    }
    assert len(knobs) > 120 and knobs <= listed
    assert "    group = 4 (params.yaml, default 1): " in shown
    assert "    learning_rate = 0.002 (default): Adam learning rate" in lines
    assert "    NAME.target (default dense): voice: of a dense cluster" in shown
    assert "    dp: from params.yaml: mechanism laplace, epsilon 10.0" in lines
    assert (
        "    anon: from params.yaml: kind anonymized, pitch plain, content plain; default: pitch_conv"
        in shown
    )


def test_set_adds_knobs_and_keeps_comments_and_edits(path: Path) -> None:
    text = path.read_text().replace("asi: {}", "asi: {}  # mine\n# more of mine")
    path.write_text(text)
    changes = ("asi.steps=3", "asi.batch=4", "train_speaker.channels=32", "systems.anon.target=farthest")
    for change in (*changes, "content_variants.dp.every=3"):
        assert main(["params", "set", change]) == 0
    params = load_params(path)
    asi = section_of(params, AsiParams)
    assert (asi.steps, asi.batch, params.train_speaker.channels) == (3, 4, 32)
    assert (params.systems["anon"].target, params.content_variants["dp"].every) == ("farthest", 3)
    after = path.read_text()
    assert "# mine\n# more of mine" in after
    assert "  anon: {kind: anonymized, pitch: plain, content: plain, target: farthest}" in after
    assert "  batch: 4  # crops per step" in after
    kept = [line for line in text.splitlines() if "anon:" not in line and "  dp:" not in line]
    assert set(kept) - {"asi: {}  # mine"} <= set(after.splitlines())
    # Text with a comma stays one value within braces, too.
    path.write_text(after.replace("report:\n  title: voxveil  # title of the report", "report: {title: x}"))
    assert main(["params", "set", "report.title=a, {b}"]) == 0
    assert load_params(path).report.title == "a, {b}"
