"""``voxveil params``: an older params.yaml is upgraded, and an edited one is never lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.config.upgrade import upgraded_text
from voxveil.runtime.errors import ParamsError

#: Keys of today that the older file of these tests lacks.
LACKING = ("train_pitch.gpus", "cluster", "systems.anon.target_sex")


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project whose params.yaml lacks keys of today and holds edited values."""
    shutil.copytree(root / "params", tmp_path / "params")
    content = yaml.safe_load((root / "params.yaml").read_text())
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
    assert "missing; 'voxveil params upgrade' adds it" in capsys.readouterr().err
    assert main(["params", "upgrade", "--check"]) == 1
    assert path.read_text() == before and not (project / "params.yaml.bak").exists()
    capsys.readouterr()
    assert main(["params", "upgrade"]) == 0
    shown = capsys.readouterr().out
    assert "+  gpus: 1" in shown and "-# my notes" in shown
    assert shown.splitlines()[-1].endswith("the file as it was: params.yaml.bak")
    assert (project / "params.yaml.bak").read_text() == before
    params = load_params(path)
    assert params.train_pitch.variants["dp"].epsilon == 3
    assert params.train_content.learning_rate == 0.00012345678901234
    assert params.report.title == "mine: a title"
    assert params.train_pitch.gpus == 1 and "anon_pc" not in params.systems
    old, new = yaml.safe_load(before), yaml.safe_load(path.read_text())
    assert_kept(old, new)
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
    text = upgraded_text(path, {"report.heading": "report.title", "train_pitch.stepz": None})
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
        },
    )
    assert yaml.safe_load(text)["train_pitch"]["variants"]["dp"]["epsilon"] == 3
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
    body = (root / "params.yaml").read_text().partition("\n")[2]
    head = "# Written by 'voxveil params use quickstart'. Values are yours; unknown keys are refused.\n"
    (project / "params.yaml").write_text(head + body)
    assert main(["params", "use", "tiny"]) == 0
    (project / "params.yaml").write_text(head + body.replace("seed: 17", "seed: 18"))
    assert main(["params", "use", "tiny"]) == 2
