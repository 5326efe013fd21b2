"""What a local run leaves is fetched as a server's run is; MLflow is told where outputs lie."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import goldens
import messages
import pytest
import stand_ins

from voxveil.cli.main import main
from voxveil.config.load import load_params
from voxveil.kubeflow.fan_in import location
from voxveil.kubeflow.fetching import fetch_results, finished_here
from voxveil.kubeflow.graph import read_pipeline
from voxveil.kubeflow.local import RECORD, run_pipeline
from voxveil.kubeflow.locations import Locations, find_locations, leave_locations
from voxveil.kubeflow.steps.call import StepResult
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES
from voxveil.tracking.client import Tracker, connect
from voxveil.tracking.store import resolve_store

SYSTEMS = ("anon", "anon_dp", "original")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the chain from its compiled file, scores in two shares, with stand-ins for the stages."""
    root = tmp_path_factory.mktemp("local")
    text = goldens.compiled(goldens.SHARDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOXVEIL_CHECKPOINTS", str(root / "checkpoints"))
        patch.setenv("VOXVEIL_LEDGER", str(root / "ledger"))
        shared = {"anonymize": stand_ins.Anonymize(), "score": stand_ins.Score()}
        for spec in STAGES:
            stage: Any = shared.get(spec.name) or messages.Recorder(spec, {})
            patch.setitem(sys.modules, f"voxveil.stages.{spec.name}", stage)
        close = SimpleNamespace(run=lambda call: StepResult({}, {}))
        patch.setitem(sys.modules, "voxveil.kubeflow.steps.close_run", close)
        run_pipeline(read_pipeline(text), root / "run", report=lambda line: None, execute=messages.here)
    return root / "run"


def refused(capsys: pytest.CaptureFixture[str], run: Path, project: Path) -> str:
    capsys.readouterr()
    assert main(["pipeline", "fetch", str(run), "--project", str(project)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not project.exists()
    return error


def test_a_local_run_is_fetched_wherever_its_folder_is_now(ran: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere and renamed"
    shutil.copytree(ran, moved)
    project = tmp_path / "project"
    # What an earlier run of other systems left in the same folder is no task of this one.
    shutil.copytree(moved / "evaluate", moved / "evaluate-9")
    assert main(["pipeline", "fetch", str(moved), "--project", str(project), "--scores"]) == 0
    params = load_params(project / "params.yaml")
    assert params == goldens.params_of(goldens.SHARDS)
    assert list(params.systems) == ["original", "anon", "anon_dp"]
    outputs = project / "outputs"
    assert sorted(path.name for path in outputs.iterdir()) == ["evaluate", "report", "score"]
    for stage, output in (("evaluate", "metrics"), ("score", "scores")):
        assert sorted(path.name for path in (outputs / stage).iterdir()) == sorted(SYSTEMS)
        for system in SYSTEMS:
            done = require_done(outputs / stage / system, stage)
            assert (done.stage, done.key, done.output) == (stage, system, output)
    assert (outputs / "report/index.html").read_bytes() == (ran / "report/report").read_bytes()


@pytest.mark.parametrize(
    ("state", "text"),
    [("RUNNING", "is still RUNNING, or was killed"), ("FAILED", "is FAILED; only one that SUCCEEDED")],
)
def test_a_local_run_that_has_not_ended_well(
    ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str, text: str
) -> None:
    write_json(tmp_path / "run" / RECORD, {**read_json(ran / RECORD), "state": state})
    assert text in refused(capsys, tmp_path / "run", tmp_path / "project")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "no folder of 'voxveil pipeline run --local'"),
        ([], "not the record of a local run"),
        ({"state": "SUCCEEDED", "arguments": {}, "tasks": {"a": 3}}, "not the record of a local run"),
        (
            {"state": "SUCCEEDED", "arguments": {}, "tasks": {}, "pipeline": "x"},
            "the pipeline x has no report",
        ),
    ],
)
def test_a_folder_that_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, text: str
) -> None:
    (tmp_path / "run").mkdir()
    if content is not None:
        write_json(tmp_path / "run" / RECORD, content)
    assert text in refused(capsys, tmp_path / "run", tmp_path / "project")


def test_parameters_of_another_version_are_named(
    ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = read_json(ran / RECORD)
    content["arguments"]["params"]["base"]["of_tomorrow"] = 1
    write_json(tmp_path / "run" / RECORD, content)
    said = refused(capsys, tmp_path / "run", tmp_path / "project")
    assert "its parameters are not of this version of voxveil: base.of_tomorrow: unknown parameter" in said


def test_an_output_of_another_stage_is_refused(ran: Path, tmp_path: Path) -> None:
    """Its digest is right, its name would be wrong."""
    run = finished_here(ran)
    swapped = Locations(run.locations.score, run.locations.evaluate, run.locations.report)
    object.__setattr__(run, "locations", swapped)
    with pytest.raises(InputError, match="is output of score anon, must be of evaluate/anon"):
        fetch_results(run, tmp_path / "project")
    assert not (tmp_path / "project/params.yaml").exists()


def test_a_run_that_fails_says_so_in_its_folder(tmp_path: Path) -> None:
    pipeline = read_pipeline(goldens.compiled("tiny"))

    seen: list[tuple[str, str]] = []

    def fails(task: Any, message: Any) -> None:
        seen.append((task.title, read_json(tmp_path / RECORD)["state"]))
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        run_pipeline(pipeline, tmp_path, report=lambda line: None, execute=fails)
    assert read_json(tmp_path / RECORD)["state"] == "FAILED"
    assert seen == [("prepare", "RUNNING"), ("close_run", "FAILED")]


@pytest.fixture
def tracker(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    pytest.importorskip("mlflow", reason="needs the mlflow extra")
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("KFP_RUN_ID", "a-run")
    return connect(resolve_store())


TOLD = Locations(
    {"anon": location("anon", "s3://b/e", "0" * 64)}, {"anon": location("anon", "s3://b/s", "1" * 64)}
)


def published(tracker: Tracker, results: str) -> str:
    """Open the runs that a report publishes; return the parent's id."""
    own = {"voxveil.kfp_run": "a-run", "voxveil.results": results}
    with tracker.burst() as client:
        parent = client.create_run(tracker.experiment_id, tags={**own, "voxveil.role": "run"})
        tags = {**own, "voxveil.role": "system", "voxveil.system": "anon"}
        client.create_run(tracker.experiment_id, tags=tags)
    return str(parent.info.run_id)


def test_the_results_of_a_retry_are_those_that_count(tracker: Tracker) -> None:
    first = published(tracker, "first")
    leave_locations(
        Locations({"anon": location("anon", "s3://b/old", "2" * 64)}, TOLD.score), "s3://b/r", "3" * 64
    )
    second = published(tracker, "second")
    with tracker.burst() as client:
        client.set_tag(first, "voxveil.superseded_by", second)
    leave_locations(TOLD, "s3://b/report", "4" * 64)
    for _ in range(2):
        found = find_locations(tracker, "a-run")
        assert (found.evaluate, found.score) == (TOLD.evaluate, TOLD.score)
        assert found.report == location("report", "s3://b/report", "4" * 64)
        leave_locations(TOLD, "s3://b/report", "4" * 64)


def test_locations_that_cannot_be_left_cost_a_warning(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_locations(TOLD, "s3://b/report", "4" * 64)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    leave_locations(TOLD, "s3://b/report", "4" * 64)
    warning = capsys.readouterr().err
    assert warning.startswith("voxveil: warning: 'voxveil pipeline fetch' will not find this run's outputs: ")
    assert warning.count("\n") == 1
    monkeypatch.delenv("KFP_RUN_ID")
    leave_locations(TOLD, "s3://b/report", "4" * 64)
    assert capsys.readouterr().err == ""
