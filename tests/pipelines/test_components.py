"""Components say the same as the stage table, and folders that would hide packages stay folders."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from voxveil.kubeflow.ends import files_artifact
from voxveil.kubeflow.generation import component_source
from voxveil.kubeflow.pods import load_resources
from voxveil.kubeflow.steps.registry import STEP_VALUES, STEPS, is_step, step_module
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import STAGES, StageSpec

ALL = (*STAGES, *STEPS)
#: What a fan-in collects; and the scores, whose location the report leaves in MLflow.
LOCATED = {port.name for spec in STAGES for port in spec.inputs if port.many} | {"scores"}
GATHERED = {port.made_by for spec in STEPS for port in spec.inputs if port.shares}
#: Texts a step takes beside ``params`` and ``key``.
STEP_PARAMETERS: dict[str, tuple[str, ...]] = {
    "anonymize_share": ("share",),
    "score_share": ("share",),
    "prepare_revision": ("repository", "dataset", "revision"),
    "gate": ("registered_model",),
    "register": ("registered_model", "model_store", "repository", "commit"),
    "evaluate_scores": ("location", "attacker", "scenario"),
    "attack_external": ("location", "suffix"),
    "probe_pitch": ("draw",),
    "probe_content": ("draw",),
}


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
    assert not {s.name for s in STAGES} & {s.name for s in STEPS}


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
def test_every_step_has_a_module(step: StageSpec, root: Path) -> None:
    assert (root / "src" / f"{step_module(step.name).replace('.', '/')}.py").is_file()
    # What they read lies outside the store, or moves: the registry, a branch.
    assert not step.cacheable


def types(items: Any) -> dict[str, str]:
    """Return the type of each input or output without its version."""
    return {name: item.type.partition("@")[0].lower() for name, item in (items or {}).items()}


@pytest.mark.parametrize("spec", ALL, ids=lambda s: s.name)
def test_signature_is_the_stage_table(spec: StageSpec, root: Path) -> None:
    component = load(root, spec).component_spec
    inputs = {"params": "dict"} | ({"key": "string"} if spec.keyed else {})
    inputs |= dict.fromkeys(STEP_PARAMETERS.get(spec.name, ()), "string")
    # Only the exit task is told how the others ended.
    inputs |= {"status": "pipelinetaskfinalstatus"} if spec.name == "close_run" else {}
    for port in spec.inputs:
        if port.many or port.shares:
            inputs[port.name] = "list[string]"
        else:
            inputs |= {port.name: f"system.{port.kind.lower()}", f"{port.name}_digest": "string"}
    inputs |= {"training": "list[string]", "scores": "list[string]"} if spec.name == "report" else {}
    assert types(component.inputs) == inputs

    outputs = dict.fromkeys(STEP_VALUES.get(spec.name, ()), "string")
    for port in spec.outputs:
        outputs[port.name] = f"system.{port.kind.lower()}"
        if files_artifact(port) != port.name:
            outputs[files_artifact(port)] = "system.dataset"
        if not port.copy_of:
            outputs[f"{port.name}_digest"] = "string"
        located = port.name in LOCATED and not port.copy_of and spec.keyed == "system"
        if located or spec.name in GATHERED:
            outputs[f"{port.name}_location"] = "string"
    outputs |= {"fingerprint": "string"} if spec.trains else {}
    assert types(component.outputs) == outputs


@pytest.mark.parametrize("spec", STAGES, ids=lambda s: s.name)
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
