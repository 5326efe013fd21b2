"""Training runs and results runs find each other; ``voxveil track find`` prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.runtime.done import finish
from voxveil.stages.context import StageContext
from voxveil.stages.registry import stage_spec
from voxveil.stages.run import fingerprint, run_stage
from voxveil.stages.training_runs import training_fingerprints, training_inputs
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store
from voxveil.tracking.stream import training_sink


@pytest.fixture
def checkout(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with evaluated systems and a prepared corpus, before its report."""
    make_outputs(project)
    for name in SYSTEMS:
        evaluate(project, name)
    public = project / "outputs/prepare/public"
    public.mkdir(parents=True)
    (public / "corpus.json").write_text("{}")
    finish(public, "prepare", None, "public")
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setenv("DVC_ROOT", str(project))
    monkeypatch.chdir(project)
    return project


def train(root: Path, stage: str, key: str, inputs: dict[str, str]) -> str:
    """Stream a curve as the stage would; return its run."""
    params = load_params(root / "params.yaml")
    digests = {name: finish_digest(root / path) for name, path in inputs.items()}
    mark = fingerprint(stage_spec(stage), key, params, digests)
    with training_sink(StageContext(stage, key, params, {}, {}, Path("unused"), mark)) as sink:
        sink(1, {"loss": 1.0})
    (run,) = connect(resolve_store()).find(fingerprint=mark)
    return str(run.info.run_id)


def finish_digest(path: Path) -> str:
    from voxveil.runtime.done import require_done

    return require_done(path, "input").digest


def report(root: Path, monkeypatch: pytest.MonkeyPatch, experiment: str) -> None:
    monkeypatch.setenv("DVC_EXP_NAME", experiment)
    out = Path("outputs")
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", root / "params.yaml", inputs, {"report": out / "report"})


def tags(run_id: str) -> dict[str, str]:
    return dict(connect(resolve_store()).client.get_run(run_id).data.tags)


def test_a_report_links_its_trainings(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    public = {"public": "outputs/prepare/public"}
    mine = train(checkout, "train_pitch", "dp", public)
    attacker_input = checkout / "outputs/anonymize/anon/attacker"
    attacker_input.mkdir()
    (attacker_input / "x").write_text("x")
    finish(attacker_input, "anonymize", "anon", "attacker")
    attacker = train(checkout, "train_attacker", "anon", {"attacker": "outputs/anonymize/anon/attacker"})
    report(checkout, monkeypatch, "rough-dusk")
    tracker = connect(resolve_store())
    (parent,) = tracker.find(role="run")
    top = parent.info.run_id
    assert parent.data.tags["voxveil.training.train_pitch.dp"] == mine
    assert parent.data.tags["voxveil.training.train_attacker.anon"] == attacker
    assert "voxveil.training.train_vocoder" not in parent.data.tags
    for run in (mine, attacker):
        assert tags(run)[f"voxveil.used_by.{top}"] == "rough-dusk"
        assert tags(run)["mlflow.parentRunId"] == top
    capsys.readouterr()
    assert main(["track", "find", "rough-dusk"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("results")
    assert [line.split()[0] for line in said.splitlines()[:-1]] == ["results"] + ["system"] * 3 + [
        "training"
    ] * 2
    for run in (top, mine, attacker):
        assert run in said
    assert "mlflow ui --backend-store-uri sqlite:///" in said
    before = tags(mine), tags(top)
    assert main(["track", "sync", "--root", str(checkout)]) == 0
    assert (tags(mine), tags(top)) == before


def test_a_training_that_two_experiments_share_is_linked_to_both(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = train(checkout, "train_pitch", "plain", {"public": "outputs/prepare/public"})
    report(checkout, monkeypatch, "first")
    report(checkout, monkeypatch, "second")
    tracker = connect(resolve_store())
    parents = {run.data.tags["voxveil.run_key"]: run.info.run_id for run in tracker.find(role="run")}
    assert set(parents) == {"first", "second"}
    found = tags(mine)
    assert {found[f"voxveil.used_by.{parents[key]}"] for key in parents} == {"first", "second"}
    assert found["mlflow.parentRunId"] == parents["first"]


def test_a_training_with_other_parameters_is_not_linked(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (checkout / "params.yaml").read_text()
    (checkout / "params.yaml").write_text(
        text.replace("epsilon: 10.0", "epsilon: 11.0").replace("epsilon: 10\n", "epsilon: 11\n")
    )
    other = train(checkout, "train_pitch", "dp", {"public": "outputs/prepare/public"})
    (checkout / "params.yaml").write_text(text)
    report(checkout, monkeypatch, "rough-dusk")
    assert not [name for name in tags(other) if "used_by" in name]


def test_inputs_follow_the_layout_of_dvc(root: Path) -> None:
    params = load_params(root / "params.yaml")
    text = (root / "dvc.yaml").read_text()
    for path in training_inputs(params):
        stem = path.split("/")[1]
        assert f"outputs/{stem}" in text
    assert "outputs/prepare/public" in training_inputs(params)
    assert "outputs/anonymize/anon_dp/attacker" in training_inputs(params)
    assert training_fingerprints(params, root / "nowhere") == {}


def test_an_unknown_experiment_is_one_line(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", "find", "no-such"]) == 2
    assert "experiment no-such: has no run in MLflow experiment 'voxveil'" in capsys.readouterr().err
    (checkout / "mlflow.db").unlink()
    assert main(["track", "find", "no-such"]) == 2
    assert "there is no MLflow store" in capsys.readouterr().err
    assert not (checkout / "mlflow.db").exists()
