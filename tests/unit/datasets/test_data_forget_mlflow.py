"""Consent withdrawn: MLflow runs and registered models made of the speaker's data are found, and go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from made_datasets import commit, make_speaker_outputs, run_data, shell, write_libri
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish

pytest.importorskip("mlflow", reason="needs the mlflow extra")

#: Digest of a prepared corpus that nobody registered.
REVISION = "c0ffee" * 8


def client_of(project: Path, empty_store: Path) -> Any:
    """Give the project an empty MLflow database; return a client of it."""
    from mlflow.tracking import MlflowClient

    shutil.copy(empty_store, project / "mlflow.db")
    return MlflowClient(f"sqlite:///{project}/mlflow.db")


def registered(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Register and commit a dataset with speaker 20; return its hash."""
    assert (
        run_data(capsys, "add", "clinic", str(write_libri(tmp_path / "in", {"20": "F", "21": "M"})))[0] == 0
    )
    commit(project, "one")
    return str(json.loads((project / "data/clinic.json").read_text())["manifest_sha256"])


def without(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Make and commit the version without speaker 20."""
    assert run_data(capsys, "forget", "20", "--yes")[0] == 0
    commit(project, "without 20")


def left(client: Any, experiment: str) -> set[str]:
    return {run.info.run_id for run in client.search_runs([experiment], run_view_type=3)}


def test_runs_are_found_by_hash_and_deleted(
    project: Path,
    empty_store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow.entities import Dataset, DatasetInput

    digest = registered(project, tmp_path, capsys)
    client = client_of(project, empty_store)
    experiment = client.create_experiment("team", f"file://{tmp_path}/artifacts")
    tagged = client.create_run(experiment, run_name="tagged", tags={"voxveil.data_revision": digest})
    versioned = client.create_run(experiment, run_name="versioned", tags={"voxveil.dataset": digest})
    logged = client.create_run(experiment, run_name="logged")
    entity = Dataset("clinic", digest[:36], "local", "{}", None, None)
    client.log_inputs(logged.info.run_id, [DatasetInput(entity, [])])
    training = client.create_run(experiment, run_name="training")
    client.set_tag(tagged.info.run_id, "voxveil.training.x", training.info.run_id)
    # One that was removed for good is no reason to stop.
    client.set_tag(tagged.info.run_id, "voxveil.training.y", "0" * 32)
    # Marked as deleted, its artifacts are still there.
    binned = client.create_run(experiment, run_name="binned", tags={"voxveil.dataset": digest})
    client.delete_run(binned.info.run_id)
    # A published run names the private side only, whichever side the speaker is on.
    make_speaker_outputs(project)
    write_json(project / "outputs/prepare/private/corpus.json", {"revision": "d" * 64})
    finish(project / "outputs/prepare/private", "prepare", None)
    published = client.create_run(experiment, run_name="published", tags={"voxveil.data_revision": "d" * 64})
    other = client.create_run(experiment, run_name="other", tags={"voxveil.data_revision": "f" * 64})
    status, out, err = run_data(capsys, "forget", "20")
    assert status == 0, err
    live = {run.info.run_id for run in (tagged, versioned, logged, training, published)}
    assert all(f"mlflow runs delete --run-id {each}" in out for each in live)
    assert f"{binned.info.run_id} team: binned (marked as deleted)" in out
    assert other.info.run_id not in out
    without(project, capsys)
    status, out, err = run_data(capsys, "forget", "20", "--gc")
    assert status == 1 and "6 runs removed for good" in out, err
    assert "still there: outputs/prepare/public; 'dvc repro'" in out
    assert left(client, experiment) == {other.info.run_id}
    # A server that is away is a gap, said and in the exit status; the project's own file is searched too.
    again = client.create_run(experiment, run_name="again", tags={"voxveil.dataset": digest})
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    status, out, _ = run_data(capsys, "forget", "20")
    assert status == 1 and "not searched: MLflow at http://127.0.0.1:9" in out
    assert again.info.run_id in out
    assert run_data(capsys, "forget", "20", "--gc")[0] == 2
    assert left(client, experiment) == {other.info.run_id, again.info.run_id}


def test_runs_of_a_corpus_that_is_no_longer_there_are_found_in_the_cache(
    project: Path, empty_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registered(project, tmp_path, capsys)
    # Prepared with the speaker, then again without; only DVC's cache holds the first.
    make_speaker_outputs(project)
    (project / "made").mkdir()
    shutil.move(project / "outputs/prepare/public", project / "made/public")
    shutil.rmtree(project / "outputs")
    stage = {
        "cmd": "cp -r made/public outputs/prepare/public",
        "deps": ["made"],
        "outs": ["outputs/prepare/public"],
    }
    (project / "outputs/prepare").mkdir(parents=True)
    write_json(project / "dvc.yaml", {"stages": {"prepare": stage}})
    (project / ".gitignore").write_text("/made\n/outputs\n/mlflow.db\n")
    shell(project, "dvc", "repro", "-q")
    commit(project, "prepared")
    shutil.rmtree(project / "made/public/pool")
    write_json(project / "made/public/corpus.json", {"revision": "e" * 64})
    without(project, capsys)
    shell(project, "dvc", "repro", "-q")
    commit(project, "prepared again")
    client = client_of(project, empty_store)
    experiment = client.create_experiment("team", f"file://{tmp_path}/artifacts")
    old = client.create_run(experiment, run_name="old", tags={"voxveil.data_revision": REVISION})
    new = client.create_run(experiment, run_name="new", tags={"voxveil.data_revision": "e" * 64})
    status, out, err = run_data(capsys, "forget", "20", "--gc")
    assert status == 0, (out, err)
    assert "1 runs removed for good" in out and "still there" not in out
    assert left(client, experiment) == {new.info.run_id}, old.info.run_id


def test_registered_models_go_unless_people_fetch_them_by_an_alias(
    project: Path, empty_store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = registered(project, tmp_path, capsys)
    client = client_of(project, empty_store)
    client.create_registered_model("anonymizer")
    experiment = client.create_experiment("team", f"file://{tmp_path}/artifacts")
    for tag in ({"voxveil.dataset": digest}, {"voxveil.dataset": digest}, {"voxveil.dataset": "e" * 64}):
        run = client.create_run(experiment, tags=tag)
        tags = {**tag, "voxveil.address": "https://git.example.org/team.git@0123:models/anon"}
        client.create_model_version(
            "anonymizer", f"{run.info.artifact_uri}/model", run.info.run_id, tags=tags, await_creation_for=0
        )
    client.set_registered_model_alias("anonymizer", "champion", "2")
    status, out, err = run_data(capsys, "forget", "20")
    assert status == 0, err
    assert "registered models made of it: 2" in out
    assert "  anonymizer version 2, alias champion: https://git.example.org/team.git" in out
    without(project, capsys)
    status, _, err = run_data(capsys, "forget", "20", "--gc")
    assert status == 2
    assert "model anonymizer version 2 is made of data that hold them and is champion" in err
    assert "nothing was deleted" in err and len(left(client, experiment)) == 3
    client.set_registered_model_alias("anonymizer", "champion", "3")
    status, out, err = run_data(capsys, "forget", "20", "--gc")
    assert status == 0, err
    assert "anonymizer version 1: version deleted" in out and "2 runs removed for good" in out
    assert [int(each.version) for each in client.search_model_versions("name = 'anonymizer'")] == [3]
    assert len(left(client, experiment)) == 1
