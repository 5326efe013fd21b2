"""The retraining pipeline: its wiring, with stand-ins for what each task does, and what it refuses."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import goldens
import messages
import pytest

from voxveil.config.compose import compose
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.graph import Pipeline, read_pipeline
from voxveil.kubeflow.local import run_pipeline
from voxveil.kubeflow.pods import Images
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.registry import STEPS, spec_of, step_runner, step_values
from voxveil.runtime.atomic import write_text
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import InputError, ParamsError, PrivacyError
from voxveil.stages.registry import STAGES, stage_spec

pytest.importorskip("kfp", reason="needs the pipeline extra")

GIVEN = {
    "repository": "https://git.example.org/data.git",
    "dataset": "libri",
    "revision": "main",
    "registered_model": "anonymizer",
    "model_store": "s3://models/voxveil",
}
IMAGES = Images(f"a@sha256:{'0' * 64}", f"b@sha256:{'1' * 64}")


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return read_pipeline(goldens.compiled("tiny", "retrain"))


def test_equals_the_reviewed_files() -> None:
    for name in goldens.OTHERS:
        goldens.check("tiny", name)


def test_it_trains_the_gated_system_beside_the_original_and_nothing_more(pipeline: Pipeline) -> None:
    titles = [task.title for task in pipeline.tasks]
    systems = {title.partition(" ")[2] for title in titles if title.startswith("bundle ")}
    assert systems == {"original", "anon_dp"}
    assert "prepare" not in titles
    assert (
        titles.count("prepare_revision")
        == titles.count("gate anon_dp")
        == titles.count("register anon_dp")
        == 1
    )
    assert list(pipeline.defaults["params"]["systems"]) == ["anon_dp", "original"]
    assert set(pipeline.parameters) == {*GIVEN, "params"}


def test_what_lies_outside_the_store_is_never_cached(pipeline: Pipeline) -> None:
    for task in pipeline.tasks:
        assert task.cached == spec_of(task.title.partition(" ")[0]).cacheable, task.title


class Steps:
    """Stands in for the steps; keeps what each was called with."""

    def __init__(self) -> None:
        self.calls: dict[str, StepCall] = {}

    def run(self, call: StepCall) -> StepResult:
        """Leave every output, as of prepare where later stages ask for that."""
        self.calls[call.step] = call
        done = {}
        stage = "prepare" if call.step == "prepare_revision" else call.step
        for port, folder in call.outputs.items():
            write_text(folder / "file.txt", f"{call.step} {port}")
            done[port] = finish(folder, stage, call.key or None, port)
        return StepResult(done, {name: f"the {name}" for name in step_values(call.step)})


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Steps:
    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))
    made = Steps()
    for spec in STAGES:
        recorder = messages.Recorder(stage_spec(spec.name), {"privacy/eer": 12.5})
        monkeypatch.setitem(sys.modules, f"voxveil.stages.{spec.name}", recorder)
    for name in {step_runner(step.name).__module__ for step in STEPS}:
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(run=made.run))
    return made


def test_every_task_gets_what_it_needs(pipeline: Pipeline, steps: Steps, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_pipeline(pipeline, run, arguments=GIVEN, report=lambda line: None, execute=messages.here)
    assert set(steps.calls) == {"prepare_revision", "gate", "register", "close_run"}
    fetched, gate, register = (steps.calls[name] for name in ("prepare_revision", "gate", "register"))
    assert {name: fetched.text(name) for name in ("repository", "dataset", "revision")} == {
        name: GIVEN[name] for name in ("repository", "dataset", "revision")
    }
    assert gate.key == register.key == "anon_dp"
    origins = {name: require_done(path, name) for name, path in gate.inputs.items()}
    assert {name: (done.stage, done.key, done.output) for name, done in origins.items()} == {
        "metrics": ("evaluate", "anon_dp", "metrics"),
        "scores": ("score", "anon_dp", "scores"),
        "original": ("evaluate", "original", "metrics"),
    }
    # Where a later gate will look for this run's evidence.
    assert gate.location("scores") == f"anon_dp {gate.inputs['scores']} {origins['scores'].digest}"
    origins = {name: require_done(path, name) for name, path in register.inputs.items()}
    assert {name: (done.stage, done.key) for name, done in origins.items()} == {
        "model": ("bundle", "anon_dp"),
        "decision": ("gate", "anon_dp"),
    }
    assert register.text("commit") == "the commit"
    assert register.text("model_store") == GIVEN["model_store"]
    assert steps.calls["close_run"].parameters["status"]["state"] == "SUCCEEDED"


def test_a_failing_gate_registers_nothing_and_the_exit_task_is_told(
    pipeline: Pipeline, steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(call: StepCall) -> StepResult:
        raise InputError("MLflow is away")

    monkeypatch.setitem(sys.modules, "voxveil.kubeflow.steps.gate", SimpleNamespace(run=away))
    with pytest.raises(InputError, match="gate anon_dp failed"):
        run_pipeline(
            pipeline, tmp_path / "run", arguments=GIVEN, report=lambda line: None, execute=messages.here
        )
    assert "register" not in steps.calls
    assert steps.calls["close_run"].parameters["status"]["state"] == "FAILED"


def test_data_not_declared_public_are_refused_when_it_is_compiled(root: Path) -> None:
    params = compose(root / "params/tiny.yaml")
    private = dataclasses.replace(params, prepare=dataclasses.replace(params.prepare, public=False))
    with pytest.raises(PrivacyError, match="prepare.public: must be true"):
        compile_pipeline(root, private, IMAGES, "retrain")


@pytest.mark.parametrize("name", ["original", "nothing"])
def test_a_system_that_cannot_be_gated_is_named(name: str, root: Path) -> None:
    params = compose(root / "params/tiny.yaml")
    other = dataclasses.replace(params, gate=dataclasses.replace(params.gate, system=name))
    with pytest.raises(
        ParamsError, match=f"gate.system: '{name}' is no anonymized system.*have: anon, anon_dp"
    ):
        compile_pipeline(root, other, IMAGES, "retrain")
