"""Components say the same as the stage table, and folders that would hide packages stay folders."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from voxveil.kubeflow.costs import costs_tables
from voxveil.kubeflow.documents import resources_text, with_block
from voxveil.kubeflow.ends import files_artifact
from voxveil.kubeflow.generation import component_source, generate, generated_files
from voxveil.kubeflow.pods import load_resources
from voxveil.kubeflow.steps.registry import (
    STEPS,
    all_steps,
    is_step,
    step_parameters,
    step_runner,
    step_values,
)
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import STAGES, StageSpec

ALL = (*STAGES, *all_steps())
#: What a fan-in collects; and the scores, whose location the report leaves in MLflow.
LOCATED = {(port.made_by, port.name) for spec in STAGES for port in spec.inputs if port.many} | {
    ("score", "scores")
}
GATHERED = {port.made_by for spec in all_steps() for port in spec.inputs if port.shares}


def load(root: Path, spec: StageSpec) -> Any:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    path = root / "components" / spec.name / "component.py"
    module_spec = importlib.util.spec_from_file_location(f"component_{spec.name}", path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return getattr(module, spec.name)


def test_one_component_per_stage_and_step(root: Path) -> None:
    assert {path.parent.name for path in root.glob("components/*/component.py")} == {s.name for s in ALL}
    assert not {s.name for s in STAGES} & {s.name for s in all_steps()}


@pytest.mark.parametrize("step", all_steps(), ids=lambda s: s.name)
def test_every_step_has_a_module(step: StageSpec, root: Path) -> None:
    shared = any(step.name.endswith(ending) for ending in ("e_share", "e_gather"))
    ours = f"kubeflow/steps/{'sharing' if shared else step.name}.py"
    module = ours if step in STEPS else "research/steps.py"
    assert Path(step_runner(step.name).__code__.co_filename).samefile(root / "src/voxveil" / module)
    # What they read lies outside the store, or moves: the registry, a branch.
    assert not step.cacheable


def types(items: Any) -> dict[str, str]:
    """Return the type of each input or output without its version."""
    return {name: item.type.partition("@")[0].lower() for name, item in (items or {}).items()}


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_signature_is_the_stage_table(spec: StageSpec, root: Path) -> None:
    component = load(root, spec).component_spec
    inputs = {"params": "dict"} | ({"key": "string"} if spec.keyed else {})
    inputs |= dict.fromkeys(step_parameters(spec.name), "string")
    # Only the exit task is told how the others ended.
    inputs |= {"status": "pipelinetaskfinalstatus"} if spec.name == "close_run" else {}
    for port in spec.inputs:
        if port.many or port.shares:
            inputs[port.name] = "list[string]"
        else:
            inputs |= {port.name: f"system.{port.kind.lower()}", f"{port.name}_digest": "string"}
    inputs |= {name: "list[string]" for name, _ in spec.collects}
    assert types(component.inputs) == inputs

    outputs = dict.fromkeys(step_values(spec.name), "string")
    for port in spec.outputs:
        outputs[port.name] = f"system.{port.kind.lower()}"
        if files_artifact(port) != port.name:
            outputs[files_artifact(port)] = "system.dataset"
        if not port.copy_of:
            outputs[f"{port.name}_digest"] = "string"
        if port.located:
            outputs[f"{port.name}_location"] = "string"
    outputs |= {"fingerprint": "string"} if spec.trains else {}
    assert types(component.outputs) == outputs


def test_what_others_collect_is_handed_on_as_a_location() -> None:
    located = {(spec.name, port.name) for spec in STAGES for port in spec.outputs if port.located}
    assert located == LOCATED
    located = {(spec.name, port.name) for spec in all_steps() for port in spec.outputs if port.located}
    # A gather has the outputs of the stage whose shares it puts together.
    gathers = {(f"{stage}_gather", name) for stage, name in LOCATED if f"{stage}_share" in GATHERED}
    assert located - gathers == {
        (s.name, p.name) for s in all_steps() if s.name in GATHERED for p in s.outputs
    }
    assert gathers <= located
    assert [spec.name for spec in ALL if spec.collects] == ["report"]


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_every_output_says_what_it_holds(spec: StageSpec) -> None:
    assert all(port.holds for port in spec.outputs)


def test_everything_generated_is_what_generation_gives(root: Path) -> None:
    files = generated_files(root)
    folders = {path.parent for path in root.glob("components/*/component.py")}
    assert {path.parent for path in files if path.name == "README.md"} == {*folders, root / "infra"}
    stale = [path for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run 'make generate'"


def test_only_what_is_generated_is_written_over(root: Path, tmp_path: Path) -> None:
    for name in ("components", "infra", "docs"):
        shutil.copytree(root / name, tmp_path / name)
    readme, resources = (tmp_path / "components/score" / name for name in ("README.md", "resources.yaml"))
    wanted = readme.read_text(encoding="utf-8")
    readme.write_text(wanted.replace("| `scores` | output", "| `score` | output").replace("Never", "NEVER"))
    tuned = resources.read_text(encoding="utf-8").replace('cpu: "4"', 'cpu: "6"')
    resources.write_text(tuned.replace("gpu: 1", "gpu: 0"))
    (tmp_path / "components/bundle/README.md").unlink()
    generate(tmp_path)
    assert readme.read_text(encoding="utf-8") == wanted.replace("Never", "NEVER")
    assert resources.read_text(encoding="utf-8") == tuned
    assert "| `model` | output | Model | public |" in (tmp_path / "components/bundle/README.md").read_text()


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_new_resources_are_complete(spec: StageSpec, tmp_path: Path) -> None:
    (tmp_path / "resources.yaml").write_text(resources_text(spec, ""))
    assert load_resources(tmp_path / "resources.yaml").gpu == int(spec.gpu)


@pytest.mark.parametrize("text", ["", "# generated: a\n", "# end: a\n", "# generated: a\n# end: a\n" * 2])
def test_missing_markers_are_named(text: str) -> None:
    with pytest.raises(InputError, match="generated block 'a': the file must have its markers"):
        with_block(text, "a", "x")


def test_costs_are_rates_times_quantities() -> None:
    entry = "{measured: '7', seconds: [36, (H + H_u) n], bytes: [500, n, each]}"
    tables = costs_tables(f"quantities: {{H: 90, H_u: 10, n: 2}}\nstages:\n  prepare: {entry}\n")
    assert "| prepare | CPU | 7 | 36 (H + H_u) n | 500 MB each |" in tables["rates"].splitlines()
    assert "| prepare | 2.0 | 1.0 |" in tables["larger"].splitlines()
    assert "| score | not measured | not measured |" in tables["larger"].splitlines()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{quantities: {}, stages: {nothing: {}}}", "no stage nothing"),
        ("{quantities: {}, stages: {score: {}}}", "stages.score: must have the keys"),
        (
            "{quantities: {}, stages: {score: {measured: '1', seconds: [1, x], bytes: [1, '']}}}",
            "stages.score: 'x' is no product",
        ),
    ],
)
def test_wrong_costs_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        costs_tables(text)


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_component_of_a_stage_is_what_generation_gives(spec: StageSpec, root: Path) -> None:
    committed = (root / "components" / spec.name / "component.py").read_text(encoding="utf-8")
    assert committed == component_source(spec), "run 'make generate'"


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_command_is_the_stage_command(spec: StageSpec, root: Path) -> None:
    container = load(root, spec).component_spec.implementation.container
    words = ["pipeline", "step"] if is_step(spec.name) else ["stage"]
    assert list(container.command) == ["voxveil", *words, spec.command, "--executor-input", "{{$}}"]
    assert not container.args


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_resources_fit_the_stage(spec: StageSpec, root: Path) -> None:
    resources = load_resources(root / "components" / spec.name / "resources.yaml")
    assert resources.gpu == int(spec.gpu)
    assert resources.image == ("gpu" if spec.torch else "cpu")


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_readme_explains_every_input_and_output(spec: StageSpec, root: Path) -> None:
    component = load(root, spec).component_spec
    text = (root / "components" / spec.name / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    assert named == {*component.inputs, *(component.outputs or {})}
    words = "pipeline step" if is_step(spec.name) else "stage"
    assert f"voxveil {words} {spec.command}" in " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image: gpu\n", "must have exactly the keys"),
        (
            "{image: tpu, cpu: '8', memory: 8Gi, gpu: 0, timeout_s: 1, retries: 0}",
            "image: must be cpu or gpu",
        ),
        ("{image: cpu, cpu: 8, memory: 8Gi, gpu: 0, timeout_s: 1, retries: 0}", "cpu: must be text"),
        ("{image: cpu, cpu: '8', memory: 8GiB, gpu: 0, timeout_s: 1, retries: 0}", "memory: must be text"),
        (
            "{image: cpu, cpu: '8', memory: 8Gi, gpu: 2, timeout_s: 1, retries: 0}",
            "gpu: must be 0 or 1, got 2",
        ),
        (
            "{image: cpu, cpu: '8', memory: 8Gi, gpu: 0, timeout_s: 0, retries: 0}",
            "timeout_s: must be a whole",
        ),
        ("[", "not valid YAML"),
    ],
)
def test_wrong_resources_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "resources.yaml"
    path.write_text(text)
    with pytest.raises(ParamsError, match=message):
        load_resources(path)


@pytest.mark.parametrize("folder", ["docker", "mlflow"])
def test_no_init_file_hides_an_installed_package(folder: str, root: Path) -> None:
    assert not list((root / folder).rglob("__init__.py"))


def test_mlflow_and_docker_import_from_the_root_of_the_checkout(root: Path) -> None:
    pytest.importorskip("mlflow", reason="needs the mlflow extra")
    pytest.importorskip("docker", reason="needs the pipeline extra")
    names = ("mlflow", "docker")
    script = f"from importlib.util import find_spec as f\nfor name in {names}: print(f(name).origin)"
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(found) == 2
    assert all(origin.endswith("__init__.py") and "site-packages" in origin for origin in found)
