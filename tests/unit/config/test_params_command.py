"""``voxveil params``: an older params.yaml is upgraded, and an edited one is never lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.config.compose import compose, params_text, to_mapping
from voxveil.config.older import RENAMED
from voxveil.config.sections import section_of
from voxveil.config.upgrade import upgraded_text
from voxveil.research.params import AsrParams
from voxveil.runtime.errors import ParamsError

#: A file in which every knob stands, and the variants inside their trainings.
LONG = "tests/old_files/params_long.yaml"
#: Keys of today that the older file of these tests lacks.
LACKING = ("train_pitch.gpus", "cluster", "systems.anon.target_sex")


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose params.yaml is of an older version, lacks keys and holds edited values."""
    shutil.copytree(root / "params", tmp_path / "params")
    content = yaml.safe_load((root / LONG).read_text())
    for path in LACKING:
        *sections, last = path.split(".")
        target = content
        for section in sections:
            target = target[section]
        del target[last]
    content["train_pitch"]["variants"]["dp"]["epsilon"] = 3
    content["train_content"]["learning_rate"] = 0.00012345678901234
    content["report"]["title"] = "mine: a title"
    del content["systems"]["anon_pc"]
    (tmp_path / "params.yaml").write_text("# my notes\n" + yaml.safe_dump(content, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(project: Path, old: str, new: str) -> str:
    """Replace a text in params.yaml; return the file's new text."""
    text = (project / "params.yaml").read_text()
    assert old in text
    (project / "params.yaml").write_text(text.replace(old, new, 1))
    return text.replace(old, new, 1)


def test_an_older_file_is_upgraded_and_keeps_its_values(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "params.yaml"
    before = path.read_text()
    assert main(["params", "check"]) == 2
    assert "train_pitch.variants: is now pitch_variants; 'voxveil params upgrade'" in capsys.readouterr().err
    assert main(["params", "upgrade", "--check"]) == 1
    assert path.read_text() == before and not (project / "params.yaml.bak").exists()
    capsys.readouterr()
    assert main(["params", "upgrade"]) == 0
    shown = capsys.readouterr().out
    assert "+cluster:" in shown and "+  dp: {mechanism: laplace, epsilon: 3.0}" in shown
    assert "-# my notes" in shown
    assert shown.splitlines()[-1].endswith("the file as it was: params.yaml.bak")
    assert (project / "params.yaml.bak").read_text() == before
    params = load_params(path)
    assert params.pitch_variants["dp"].epsilon == 3
    assert params.train_content.learning_rate == 0.00012345678901234
    assert params.report.title == "mine: a title"
    assert params.train_pitch.gpus == 1 and "anon_pc" not in params.systems
    old, new = yaml.safe_load(before), to_mapping(params)
    for training, table in (("train_pitch", "pitch_variants"), ("train_content", "content_variants")):
        old[table] = old[training].pop("variants")
    assert_kept(old, new)
    assert "'voxveil params upgrade'" in path.read_text().splitlines()[0]
    assert main(["params", "use", "quickstart"]) == 2, "an upgraded file holds a person's values"
    assert "was edited" in capsys.readouterr().err
    after = path.read_text()
    assert main(["params", "upgrade"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert path.read_text() == after and not (project / "params.yaml.bak.2").exists()


def assert_kept(old: dict, new: dict) -> None:
    for key, value in old.items():
        if isinstance(value, dict):
            assert_kept(value, new[key])
        else:
            assert new[key] == value, key


def test_an_older_backup_is_never_overwritten(project: Path) -> None:
    (project / "params.yaml.bak").write_text("first")
    before = (project / "params.yaml").read_text()
    assert main(["params", "upgrade"]) == 0
    assert (project / "params.yaml.bak").read_text() == "first"
    assert (project / "params.yaml.bak.2").read_text() == before


def test_a_missing_key_gets_the_value_of_its_scale(project: Path) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["base"]["scale"] = "tiny"
    del content["prepare"]["utterances"]
    (project / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    assert main(["params", "upgrade"]) == 0
    assert load_params(project / "params.yaml").prepare.utterances == 6


def test_an_unknown_key_is_refused_by_its_path(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = edit(project, "train_pitch:\n", "train_pitch:\n  stepz: 3\n")
    assert main(["params", "upgrade"]) == 2
    assert "train_pitch.stepz: unknown parameter" in capsys.readouterr().err
    assert (project / "params.yaml").read_text() == before
    assert not (project / "params.yaml.bak").exists()


def test_renamed_keys_move_with_their_values(project: Path) -> None:
    path = project / "params.yaml"
    edit(project, "  title: ", "  heading: ")
    edit(project, "train_pitch:\n", "train_pitch:\n  stepz: 3\n")
    text = upgraded_text(path, {**RENAMED, "report.heading": "report.title", "train_pitch.stepz": None})
    content = yaml.safe_load(text)
    assert content["report"]["title"] == "mine: a title"
    assert "stepz" not in content["train_pitch"] and "heading" not in content["report"]
    edit(project, "      epsilon: 3\n", "      eps: 3\n")
    text = upgraded_text(
        path,
        {
            "report.heading": "report.title",
            "train_pitch.stepz": None,
            "train_pitch.variants.*.eps": "train_pitch.variants.*.epsilon",
            **RENAMED,
        },
    )
    assert yaml.safe_load(text)["pitch_variants"]["dp"]["epsilon"] == 3
    with pytest.raises(ParamsError, match=r"report\.heading: is now base\.seed, which is there too"):
        upgraded_text(path, {"report.heading": "base.seed"})


def test_use_keeps_an_edited_file_unless_forced(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (project / "params.yaml").read_text()
    assert main(["params", "use", "tiny"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "params.yaml: was edited and is kept" in line and "params use tiny --force" in line
    assert (project / "params.yaml").read_text() == before
    assert main(["params", "use", "tiny", "--force"]) == 0
    assert main(["params", "use", "quickstart"]) == 0
    edit(project, "seed: 17", "seed: 18")
    assert main(["params", "use", "quickstart"]) == 2


def test_use_again_is_not_refused_for_what_use_wrote(project: Path) -> None:
    path = project / "params.yaml"
    assert main(["params", "use", "tiny", "--force", "--set", "report.title=it's mine"]) == 0
    assert "--set 'report.title=it'\"'\"'s mine'" in path.read_text().splitlines()[0]
    assert main(["params", "use", "tiny", "--set", "prepare.source=/data/a b"]) == 0
    overlay = project / "params/tiny.yaml"
    overlay.write_text(overlay.read_text() + "gate: {}\n" * ("gate:" not in overlay.read_text()))
    (project / "params/mine.yaml").write_text("extends: tiny\nbase: {seed: 4}\n")
    assert main(["params", "use", "mine"]) == 0
    (project / "params/mine.yaml").write_text("extends: tiny\nbase: {seed: 5}\n")
    assert main(["params", "use", "mine"]) == 0
    assert load_params(path).base.seed == 5


def test_a_file_of_the_version_without_digest_is_known_as_unedited(root: Path, project: Path) -> None:
    body = (root / LONG).read_text().partition("\n")[2]
    head = "# Written by 'voxveil params use quickstart'. Values are yours; unknown keys are refused.\n"
    (project / "params.yaml").write_text(head + body)
    assert main(["params", "use", "tiny"]) == 0
    (project / "params.yaml").write_text(head + body.replace("seed: 17", "seed: 18"))
    assert main(["params", "use", "tiny"]) == 2


def test_a_section_that_is_new_gets_its_values_and_left_out_knobs_their_default(
    root: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "params.yaml"
    text = params_text(compose(root / "params/librispeech.yaml"))
    start = text.index("# The recognizer of `probe utility`")
    end = text.index("# What is decoded from features alone")
    report, gate = text.index("# The page and its figures."), text.index("# When a newly trained system")
    edited = text[:report] + text[gate:start] + text[end:]
    without = "".join(line for line in edited.splitlines(keepends=True) if "kind: nsf_gan" not in line)
    path.write_text(without)
    assert main(["params", "check"]) == 2
    assert "report: missing; 'voxveil params upgrade' adds it" in capsys.readouterr().err
    assert main(["params", "upgrade"]) == 0
    params = load_params(path)
    assert section_of(params, AsrParams).steps == 80_000, "a section gets the values of its scale"
    assert params.train_vocoder.kind == "stft", "a knob that a file leaves out has its default"


def test_a_file_that_was_edited_and_then_says_what_an_overlay_says_is_kept_for_its_comments(
    project: Path,
) -> None:
    path = project / "params.yaml"
    assert main(["params", "use", "tiny", "--force"]) == 0
    path.write_text(path.read_text() + "# my notes\n")
    assert main(["params", "use", "quickstart"]) == 2
    assert "# my notes" in path.read_text()
