"""One stem per stage everywhere: registry, modules, dvc.yaml, components and params never part."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from voxveil.config.compose import compose, overlay_names
from voxveil.config.model import SystemParams
from voxveil.config.sections import params_class
from voxveil.kubeflow.generation import generated_files
from voxveil.stages.dvc_pipeline import dvc_yaml
from voxveil.stages.registry import STAGES, StageSpec

SPECS = {spec.name: spec for spec in STAGES}


@pytest.fixture(scope="module")
def dvc_stages(root: Path) -> dict:
    return yaml.safe_load((root / "dvc.yaml").read_text())["stages"]


def body(stage: dict) -> dict:
    return stage["do"] if "foreach" in stage else stage


def names(entries: list) -> list[str]:
    return [next(iter(entry)) if isinstance(entry, dict) else entry for entry in entries]


def test_every_overlay_composes(root: Path) -> None:
    assert {"tiny", "quickstart"} <= set(overlay_names(root / "params"))
    for name in overlay_names(root / "params"):
        assert compose(root / "params" / f"{name}.yaml").base.scale == name


def test_dvc_yaml_is_what_make_generate_writes(root: Path) -> None:
    assert (root / "dvc.yaml").read_text() == dvc_yaml()


def test_what_dvc_yaml_interpolates_always_stands_in_params_yaml(root: Path) -> None:
    """A missing one would stop every command of DVC, not only the stage."""
    names = set(re.findall(r"\$\{([a-z_.]+)\}", (root / "dvc.yaml").read_text())) - {"key"}
    sections = {
        field.name: getattr(params_class()(), field.name) for field in dataclasses.fields(params_class())
    }
    sections["item"] = SystemParams()
    for section, _, knob in (name.partition(".") for name in names):
        if knob:
            (field,) = (each for each in dataclasses.fields(sections[section]) if each.name == knob)
            assert field.metadata["written"] == "always", f"{section}.{knob}"
    assert {"prepare.manifest", "score.original", "transcribe.variant", "item.pitch", "systems"} <= names


def test_ci_compares_every_generated_file(root: Path) -> None:
    """What 'make generate' writes is in the comparison of .ci/run, and of the workflow."""
    for name in (".ci/run", ".github/workflows/ci.yml"):
        (compared,) = re.findall(r"git diff --exit-code -- ([a-z. ]+)", (root / name).read_text())
        generated = {path.relative_to(root).parts[0] for path in generated_files(root)}
        assert {"params.yaml", *generated} == set(compared.split())


def test_dvc_has_exactly_the_stages_in_order(dvc_stages: dict) -> None:
    assert list(dvc_stages) == list(SPECS)


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_stage_has_module_section_and_component(spec: StageSpec, root: Path) -> None:
    assert (root / "src/voxveil/stages" / f"{spec.name}.py").is_file()
    assert (root / "components" / spec.name / "component.py").is_file()
    assert (root / "components" / spec.name / "README.md").is_file()
    assert spec.name in {field.name for field in dataclasses.fields(params_class())}


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_dvc_command_names_every_port(spec: StageSpec, dvc_stages: dict) -> None:
    command = body(dvc_stages[spec.name])["cmd"]
    assert command.startswith(f"voxveil stage {spec.command} ")
    assert ("--key ${key}" in command) == bool(spec.keyed)
    assert re.findall(r"--in (\w+)=", command) == [port.name for port in spec.inputs]
    assert re.findall(r"--out (\w+)=", command) == [port.name for port in spec.outputs]


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_dvc_declares_what_the_command_touches(spec: StageSpec, dvc_stages: dict) -> None:
    stage = body(dvc_stages[spec.name])
    inputs = re.findall(r"--in \w+=(\S+)", stage["cmd"])
    outputs = re.findall(r"--out \w+=(\S+)", stage["cmd"])
    declared = names(stage.get("outs", [])) + names(stage.get("metrics", [])) + names(stage.get("plots", []))
    assert sorted(declared) == sorted(outputs)
    # Which version of its source prepare reads is no output of a stage.
    version = ["${prepare.manifest}"] if spec.name == "prepare" else []
    assert [dep for dep in stage["deps"] if not dep.startswith("src/")] == version + inputs


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_dvc_depends_on_the_declared_code(spec: StageSpec, dvc_stages: dict) -> None:
    code = {
        dep.removeprefix("src/voxveil/")
        for dep in body(dvc_stages[spec.name])["deps"]
        if dep.startswith("src/")
    }
    assert code == {*spec.packages, f"stages/{spec.name}.py"}


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_dvc_reads_exactly_its_parameters(spec: StageSpec, dvc_stages: dict) -> None:
    # The name of the scale is told in results and decides none: what two scales share is made once.
    expected = {"base"} if spec.name in ("evaluate", "report") else {"base.seed", "base.threads"}
    for section in spec.sections:
        # A whole section: a knob that params.yaml leaves out is seen as soon as somebody adds it.
        expected.add(section)
    table = {"system": "systems", "": ""}.get(spec.keyed, f"{spec.keyed}s")
    if table:
        expected.add(f"{table}.${{key}}")
    assert dvc_stages[spec.name].get("foreach") == (f"${{{table}}}" if table else None)
    assert set(body(dvc_stages[spec.name])["params"]) == expected
    assert {name.partition(".")[0] for name in expected} <= {
        field.name for field in dataclasses.fields(params_class())
    }


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
def test_declared_code_covers_every_import(spec: StageSpec, root: Path) -> None:
    """A stage whose module imports something undeclared would not rerun when that changes."""
    source = root / "src/voxveil"
    # Links between runs in MLflow change nothing in an output.
    links = source / "stages/training_runs.py"
    pending, seen = [source / "stages" / f"{spec.name}.py"], {links}
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        pending += imported(path, source)
    declared = [source / name for name in (*spec.packages, f"stages/{spec.name}.py")]
    exempt = {source / "__init__.py", source / "stages/__init__.py", links}
    # What a training streams to MLflow changes nothing in its output.
    exempt |= set((source / "tracking").glob("*.py"))
    missing = {
        path.relative_to(source).as_posix()
        for path in seen - exempt
        if not any(path == each or each in path.parents for each in declared) and path.name != "__init__.py"
    }
    assert not missing


def imported(path: Path, source: Path) -> list[Path]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            if module.startswith("voxveil"):
                base = source.joinpath(*module.split(".")[1:])
                found += [each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()]
    return found
