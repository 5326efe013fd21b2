"""Every knob that README.md and docs/ name exists; DVC's ``-S`` and ``voxveil params set`` change it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from functools import reduce
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import yaml

from voxveil.cli.main import main
from voxveil.config.compose import compose, params_text, scalar_text, to_mapping
from voxveil.config.load import load_params
from voxveil.config.sections import params_class

pytest.importorskip("dvc")

#: Documented knobs that the composed quickstart leaves out: DVC needs ``-S +KEY=VALUE`` for them, as
#: docs/guide.md says beside ``voxveil params set``.
LEFT_OUT = {
    "asr.beam",
    "asr.max_seconds",
    "prepare.machine_transcripts",
    "probe.largest_errors",
    "train_attacker.pretrained",
    "train_attacker.wavlm",
    "train_content.bf16",
    "train_content.gpus",
    "train_content.targets",
    "train_vocoder.gpus",
    "train_vocoder.pretrained",
    "transcribe.naturalness",
    "transcribe.recognizer",
}
#: Sections that no stage reads: a change of them runs nothing again.
UNREAD = {"asi", "probe", "asr", "gate", "cluster"}
#: What stands in the docs for any variant, and a name that the quickstart has.
ANY, NAME = "ID", "dp"
_SECTIONS = [field.name for field in dataclasses.fields(params_class())]
_KNOB = re.compile(rf"(?<![\w./-])(?:{'|'.join(_SECTIONS)})(?:\.\w+)+")
_FILES = (".md", ".py", ".json", ".yaml", ".csv")


def documented(root: Path) -> set[str]:
    """Return the dotted paths of knobs in README.md and docs/."""
    texts = [path.read_text() for path in (root / "README.md", *sorted((root / "docs").rglob("*.md")))]
    found = {match for text in texts for match in _KNOB.findall(text) if not match.endswith(_FILES)}
    names = {path.replace(f".{ANY}.", f".{NAME}.") for path in found}
    # A system or variant by itself (systems.original) is no knob.
    return {path for path in names if not (path.split(".")[0] in tables() and path.count(".") == 1)}


def tables() -> set[str]:
    """Return the sections whose keys a user chooses."""
    return {name for name, hint in get_type_hints(params_class()).items() if get_origin(hint) is dict}


def field_of(path: str) -> dataclasses.Field[Any]:
    """Return the schema's field of a knob."""
    section, *_, knob = path.split(".")
    hint = get_type_hints(params_class())[section]
    kind = get_args(hint)[1] if get_origin(hint) is dict else hint
    (field,) = (each for each in dataclasses.fields(kind) if each.name == knob)
    return field


def another(path: str, value: Any) -> Any:
    """Return another value that a knob may have."""
    rules = field_of(path).metadata
    if rules["one_of"]:
        others = [word for word in rules["one_of"] if word not in (value, "identity", "gaussian")]
        return others[0]
    if isinstance(value, bool):
        return not value
    if path == "train_attacker.kinds":
        return "xvector_plda"
    return "other" if isinstance(value, str) else value + 1 if rules["high"] != value else value - 1


def at(content: Any, path: str) -> Any:
    return reduce(lambda part, name: part[name], path.split("."), content)


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a DVC project with this dvc.yaml and the quickstart's params.yaml."""
    from dvc.repo import Repo

    shutil.copy(root / "dvc.yaml", tmp_path)
    (tmp_path / "params.yaml").write_text(params_text(compose(root / "params/quickstart.yaml")))
    Repo.init(str(tmp_path), no_scm=True).close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_by_stages(project: Path) -> dict[str, dict[str, Any]]:
    """Return the parameters that each stage depends on, as DVC resolves them."""
    from dvc.dependency import ParamsDependency
    from dvc.repo import Repo

    with Repo(str(project)) as repo:
        return {
            stage.addressing: {
                name: value
                for dependency in stage.deps
                if isinstance(dependency, ParamsDependency)
                for name, value in dependency.read_params().items()
            }
            for stage in repo.index.stages
        }


def test_every_documented_knob_is_known_and_said_to_stand_in_the_file_or_not(root: Path) -> None:
    paths = documented(root)
    assert len(paths) > 25
    assert {"pitch_variants.dp.epsilon", "content_variants.dp.mechanism", "cluster.parallel"} <= paths
    content = yaml.safe_load(params_text(compose(root / "params/quickstart.yaml")))
    absent = set()
    for path in paths:
        assert field_of(path).metadata["doc"]
        section, *names = path.split(".")
        if reduce(lambda part, name: part.get(name, {}), names, content[section]) == {}:
            absent.add(path)
    assert absent == LEFT_OUT


def test_exp_run_changes_every_documented_knob_and_its_stages_see_it(root: Path, project: Path) -> None:
    from dvc.utils.hydra import apply_overrides

    before = read_by_stages(project)
    assert {"prepare", "train_pitch@dp", "evaluate@anon_dp", "report"} <= set(before)
    whole = to_mapping(load_params(project / "params.yaml"))
    changes = {path: another(path, at(whole, path)) for path in sorted(documented(root))}
    for path, value in changes.items():
        plus = "+" if path in LEFT_OUT else ""
        apply_overrides(project / "params.yaml", [f"{plus}{path}={scalar_text(value)}"])
    after = read_by_stages(project)
    assert set(after) == set(before)
    for path, value in changes.items():
        seen = {
            name for name, read in after.items() if lookup(read, path) == value != lookup(before[name], path)
        }
        assert bool(seen) == (path.split(".")[0] not in UNREAD), path
    load_params(project / "params.yaml")


def lookup(read: dict[str, Any], path: str) -> Any:
    """Return the value of a knob among the sections that a stage reads; None where it has none."""
    for name, value in read.items():
        if path == name or path.startswith(f"{name}."):
            rest = [part for part in path.removeprefix(name).split(".") if part]
            return reduce(lambda part, key: part.get(key) if isinstance(part, dict) else None, rest, value)
    return None


@pytest.mark.parametrize("path", sorted(LEFT_OUT))
def test_without_the_plus_dvc_refuses_a_knob_that_is_left_out(project: Path, path: str) -> None:
    """It is an error, never a run with the value unchanged."""
    from dvc.exceptions import InvalidArgumentError
    from dvc.utils.hydra import apply_overrides

    with pytest.raises(InvalidArgumentError):
        apply_overrides(project / "params.yaml", [f"{path}=1"])


def test_params_set_changes_every_documented_knob(root: Path, project: Path) -> None:
    path = project / "params.yaml"
    whole = to_mapping(load_params(path))
    for knob in sorted(documented(root)):
        value = another(knob, at(whole, knob))
        assert main(["params", "set", f"{knob}={scalar_text(value)}"]) == 0, knob
        assert at(to_mapping(load_params(path)), knob) == value


def test_a_stage_runs_again_for_a_knob_that_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of one stage that reads a section without any knob in the file."""
    from dvc.repo import Repo
    from dvc.utils.hydra import apply_overrides

    monkeypatch.chdir(tmp_path)
    stage = {"cmd": "cp params.yaml out.yaml", "params": ["asi", "variants.dp"], "outs": ["out.yaml"]}
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"one": stage}}))
    (tmp_path / "params.yaml").write_text("asi: {}\nvariants:\n  dp: {epsilon: 1.0}\n")
    with Repo.init(str(tmp_path), no_scm=True) as repo:
        assert repo.reproduce()
        assert repo.status() == {}
        for override in ("+asi.steps=3", "variants.dp.epsilon=2"):
            apply_overrides(tmp_path / "params.yaml", [override])
            assert "one" in repo.status(), override
            assert repo.reproduce()
            assert repo.status() == {}
    content = yaml.safe_load((tmp_path / "out.yaml").read_text())
    assert content == {"asi": {"steps": 3}, "variants": {"dp": {"epsilon": 2}}}
