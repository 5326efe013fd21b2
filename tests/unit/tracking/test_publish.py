"""Finished runs in MLflow: complete, found again, sent once, and without a private name."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, Made, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.metrics.catalogue import METRICS
from voxveil.runtime.atomic import read_json
from voxveil.stages.run import run_stage
from voxveil.tracking.client import TrackingError, connect
from voxveil.tracking.publish import send as module
from voxveil.tracking.publish.plan import system_plan
from voxveil.tracking.publish.send import publish, run_key
from voxveil.tracking.store import Store, resolve_store

MARK = "Zanzibar"


def report(root: Path) -> None:
    out = root / "outputs"
    run_stage(
        "report",
        root / "params.yaml",
        {"metrics": out / "evaluate", "samples": out / "samples"},
        {"report": out / "report"},
    )


def finished(root: Path, systems: dict[str, Made] = SYSTEMS, **options) -> Path:
    make_outputs(root, systems, **options)
    for name in systems:
        evaluate(root, name)
    report(root)
    return root


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("public"))


@pytest.fixture
def store(project: Path) -> Store:
    return resolve_store({"DVC_ROOT": str(project)})


def send(outputs: Path, store: Store, experiment: str = "") -> str:
    return publish(
        outputs / "outputs/evaluate", outputs / "outputs/report", experiment=experiment, store=store
    )


def everything(store: Store) -> dict[str, dict]:
    """All that the store holds, by run id."""
    tracker = connect(store)
    client = tracker.client

    def history(run_id: str, name: str) -> list[tuple]:
        return [(m.value, m.step, m.timestamp) for m in client.get_metric_history(run_id, name)]

    return {
        run.info.run_id: {
            "status": run.info.status,
            "params": run.data.params,
            "tags": run.data.tags,
            "metrics": {
                name: [
                    (m.value, m.step, m.timestamp) for m in client.get_metric_history(run.info.run_id, name)
                ]
                for name in run.data.metrics
            },
            "inputs": [each.dataset.digest for each in run.inputs.dataset_inputs],
            "files": {
                path.relative_to(store.artifacts / run.info.run_id).as_posix(): (
                    hashlib.sha256(path.read_bytes()).hexdigest(),
                    path.stat().st_mtime_ns,
                )
                for path in sorted((store.artifacts / run.info.run_id).rglob("*"))
                if path.is_file()
            },
        }
        for run in client.search_runs([tracker.experiment_id])
    }


def system(found: dict[str, dict], name: str) -> dict:
    (run,) = [each for each in found.values() if each["tags"].get("voxveil.system") == name]
    return run


def test_a_run_names_licence_source_and_digest_of_imported_models(outputs: Path) -> None:
    folder = outputs / "outputs/evaluate/anon_dp"
    summary = read_json(folder / "summary.json")
    judge = {"architecture": "distillmos", "digest": "12" * 32, "licence": "MIT", "source": "package x==1"}
    network = {"architecture": "campplus", "digest": "ab" * 32, "licence": "Apache-2.0", "source": "hub a/b"}
    summary["utility"]["naturalness"] = {"distillmos": {"value": 3.0, "model": judge}}
    summary["attacks"][0]["pretrained"] = network
    tags = system_plan(folder, summary, "key", "results").tags
    for model in (judge, network):
        where = f"voxveil.pretrained.{model['architecture']}.{model['digest'][:12]}"
        assert {name: tags[f"{where}.{name}"] for name in ("digest", "licence", "source")} == {
            name: model[name] for name in ("digest", "licence", "source")
        }


def test_one_parent_and_a_child_per_system(outputs: Path, store: Store) -> None:
    parent = send(outputs, store)
    found = everything(store)
    assert len(found) == 1 + len(SYSTEMS)
    assert {run["status"] for run in found.values()} == {"FINISHED"}
    for name in SYSTEMS:
        run = system(found, name)
        assert run["tags"]["mlflow.parentRunId"] == parent
        assert run["tags"]["voxveil.synthetic"] == "true"
        assert run["tags"]["voxveil.data_revision"] == "0f" * 32
        assert len(run["tags"]["mlflow.source.git.commit"]) == 40
        flat = read_json(outputs / "outputs/evaluate" / name / f"{name}.metrics.json")
        assert {metric: history[0][0] for metric, history in run["metrics"].items()} == flat
        assert run["params"]["attacker"] == "ecapa"
        assert (run["params"]["enrolment"], run["params"]["trial"]) in (
            ("original", "original"),
            ("anonymized", "anonymized"),
        )
        assert "artifacts/evaluate/losses.json" in run["files"]
        assert "EER of 50 %" in run["tags"]["mlflow.note.content"]
    top = found[parent]
    assert {"artifacts/report/index.html", "artifacts/figures/rank_histogram.png"} <= set(top["files"])
    ((mine, *_),) = system(found, "anon_dp")["metrics"]["privacy/eer"]
    ((same, *_),) = top["metrics"]["anon_dp/privacy/eer"]
    assert mine == same
    note = top["tags"]["mlflow.note.content"]
    assert "| anon_dp |" in note
    assert f"/runs/{parent}/artifacts/report/index.html)" in note.splitlines()[0]
    assert "/artifacts/evaluate/losses.json)" in system(found, "anon_dp")["tags"]["mlflow.note.content"]


def test_epsilon_is_text_and_number_and_absent_when_infinite(outputs: Path, store: Store) -> None:
    send(outputs, store)
    found = everything(store)
    private = system(found, "anon_dp")
    assert private["metrics"]["privacy/epsilon_pitch"][0][0] == 10.0
    assert private["params"]["epsilon.content"] == "10 per vector (laplace_l1, L1 sensitivity 2)"
    # The longest tested utterance has 147 vectors: 10 + 147 x 10.
    assert private["metrics"]["privacy/epsilon_utterance"][0][0] == 1480.0
    open_system = system(found, "anon")
    assert not any("epsilon" in name for name in open_system["metrics"])
    assert open_system["tags"]["voxveil.unbounded.privacy/epsilon_utterance"]


def test_what_has_no_number_has_a_tag_with_the_reason(outputs: Path, store: Store) -> None:
    send(outputs, store)
    for name, run in ((name, system(everything(store), name)) for name in SYSTEMS):
        full = read_json(outputs / "outputs/evaluate" / name / "ecapa-semi_informed.json")
        for metric in METRICS:
            key = f"privacy/{metric}"
            tags = [f"voxveil.{kind}.{key}" in run["tags"] for kind in ("undefined", "unbounded")]
            assert (key in run["metrics"]) == (full["metrics"][metric]["value"] is not None)
            assert any(tags) == (key not in run["metrics"])
        assert all(abs(m[0][0]) < 1e300 for m in run["metrics"].values())


def test_sending_twice_changes_nothing(outputs: Path, store: Store) -> None:
    first = send(outputs, store)
    before = everything(store)
    assert send(outputs, store) == first
    assert everything(store) == before


def test_a_run_sent_in_part_is_completed(
    outputs: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = module._fill, []

    def breaks(tracker, plan, run_id):
        calls.append(plan.name)
        if len(calls) == 2:
            raise TrackingError("the server went away")
        real(tracker, plan, run_id)

    monkeypatch.setattr(module, "_fill", breaks)
    with pytest.raises(TrackingError):
        send(outputs, store)
    assert "FINISHED" not in {
        run["status"] for run in everything(store).values() if run["tags"]["voxveil.role"] == "run"
    }
    monkeypatch.setattr(module, "_fill", real)
    parent = send(outputs, store)
    found = everything(store)
    assert len(found) == 1 + len(SYSTEMS)
    assert {run["status"] for run in found.values()} == {"FINISHED"}
    assert found[parent]["tags"]["voxveil.sent"]


def test_other_results_of_an_experiment_become_a_new_run(outputs: Path, store: Store, tmp_path: Path) -> None:
    old = send(outputs, store, "rough-dusk")
    halved = {**SYSTEMS, "anon_dp": Made(0.3, pitch=5.0, content=5.0, per=62.0)}
    new = send(finished(tmp_path / "halved", halved), store, "rough-dusk")
    found = everything(store)
    assert new != old
    assert found[old]["tags"]["voxveil.superseded_by"] == new
    assert found[old]["metrics"]["anon_dp/privacy/epsilon_utterance"][0][0] == 1480.0
    assert found[new]["metrics"]["anon_dp/privacy/epsilon_utterance"][0][0] == 740.0


def test_results_of_an_experiment_are_not_published_a_second_time(outputs: Path, store: Store) -> None:
    first = send(outputs, store, "rough-dusk")
    assert send(outputs, store) == first


def test_the_run_key() -> None:
    assert run_key("digest", {}) == "digest"
    assert run_key("digest", {"DVC_EXP_NAME": "rough-dusk"}) == "rough-dusk"
    assert run_key("digest", {"DVC_EXP_NAME": "rough-dusk", "KFP_RUN_ID": "r1"}) == "r1"


def test_a_run_in_the_environment_is_not_adopted(
    outputs: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = connect(store)
    theirs = tracker.client.create_run(tracker.experiment_id).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", theirs)
    parent = send(outputs, store)
    found = everything(store)
    assert found[parent]["tags"]["mlflow.parentRunId"] == theirs
    assert system(found, "anon")["tags"]["mlflow.parentRunId"] == parent
    assert found[theirs]["status"] == "RUNNING"
    assert not found[theirs]["metrics"]


def test_sync_publishes_what_the_report_could_not(
    outputs: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    before = read_json(outputs / "outputs/report/_DONE.json")
    report(outputs)
    assert read_json(outputs / "outputs/report/_DONE.json") == before
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("voxveil:")]
    assert "'voxveil track sync' publishes them later" in line
    assert main(["track", "sync", "--root", str(outputs)]) == 1
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)
    assert main(["track", "sync", "--root", str(outputs)]) == 0
    assert "published to sqlite:///" in capsys.readouterr().out


def test_unfinished_outputs_are_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", "sync", "--root", str(tmp_path)]) == 2
    assert "outputs/report does not exist" in capsys.readouterr().err


def test_nothing_private_reaches_mlflow_or_the_report(tmp_path: Path, store: Store) -> None:
    secret = {"public": False, "name": f"{MARK} corpus", "note": MARK}
    root = finished(tmp_path / "private", corpus=secret, mark=MARK, samples=False)
    send(root, store)
    places = [root / "outputs/evaluate", root / "outputs/report", root / "metrics", store.lock.parent]
    read = 0
    for place in places:
        for path in place.rglob("*"):
            if path.is_file():
                assert MARK not in path.name
                assert MARK.encode() not in path.read_bytes(), path
                read += 1
    assert read > 20
    assert MARK.encode() in (root / "outputs/anonymize/anon/released/ledger.json").read_bytes()


def test_a_registered_dataset_is_logged_with_what_finds_it(tmp_path: Path, store: Store) -> None:
    version = {"manifest_sha256": "ab" * 32, "dvc_md5": f"{'cd' * 16}.dir"}
    root = finished(tmp_path / "run", corpus={"dataset": version}, samples=False)
    parent = send(root, store)
    tracker = connect(store)
    for run in tracker.client.search_runs([tracker.experiment_id]):
        assert run.data.tags["voxveil.dataset"] == version["manifest_sha256"]
        (found,) = run.inputs.dataset_inputs
        assert (found.dataset.name, found.dataset.source_type) == ("embedded", "dvc")
        source = json.loads(found.dataset.source)
        commit = run.data.tags["mlflow.source.git.commit"]
        assert source == {**version, "revision": "0f" * 32, "git_commit": commit}
    assert (
        tracker.client.search_runs(
            [tracker.experiment_id], f"tags.`voxveil.dataset` = '{'ab' * 32}' and tags.`voxveil.role` = 'run'"
        )[0].info.run_id
        == parent
    )


def test_an_undefined_error_rate_is_a_tag(outputs: Path) -> None:
    folder = outputs / "outputs/evaluate/anon_dp"
    summary = read_json(folder / "summary.json")
    summary["utility"]["per"].update(value=None, ci95=None, reason="no reference phones")
    plan = system_plan(folder, summary, "key", "results")
    assert plan.tags["voxveil.undefined.utility/per"] == "no reference phones"
    assert "voxveil.unbounded.privacy/epsilon_pitch" not in plan.tags


def test_a_long_configuration_is_kept_in_full_as_a_file(tmp_path: Path, store: Store) -> None:
    make_outputs(tmp_path, SYSTEMS)
    for name in SYSTEMS:
        evaluate(tmp_path, name)
    title = "a title of ten thousand characters " * 300
    path = tmp_path / "params.yaml"
    path.write_text(re.sub(r"(?m)^  title: .*$", f"  title: {title.strip()}", path.read_text()))
    report(tmp_path)
    found = everything(store)[parent] if (parent := send(tmp_path, store)) else {}
    (file,) = store.artifacts.rglob("params.json")
    kept = read_json(file)
    assert kept["report"]["title"] == title.strip()
    assert kept["pitch_variants"]["dp"]["epsilon"] == 10
    assert len(found["tags"]["mlflow.runName"]) < 250
    assert all(len(value) <= 500 for value in found["params"].values())
