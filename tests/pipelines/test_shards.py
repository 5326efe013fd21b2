"""The chain with its work shared between pods: the file under review, and its steps."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import messages
import pytest
import stand_ins

pytest.importorskip("kfp", reason="needs the pipeline extra")

import goldens

from voxveil.config.compose import compose, to_mapping
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.fan_in import location
from voxveil.kubeflow.graph import Pipeline, Task, read_pipeline
from voxveil.kubeflow.local import check_outputs
from voxveil.kubeflow.pods import Images
from voxveil.kubeflow.steps.registry import STEPS, gather_of, share_of
from voxveil.kubeflow.steps.running import run_step
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import IncompleteInputError, InputError, ParamsError, VoxveilError
from voxveil.stages.registry import STAGES
from voxveil.stages.run import SHARE


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return read_pipeline(goldens.compiled(goldens.SHARDS))


def named(pipeline: Pipeline, title: str) -> Task:
    return next(task for task in pipeline.tasks if task.title == title)


def test_equals_the_reviewed_file() -> None:
    goldens.check(goldens.SHARDS)


def test_only_anonymize_and_score_are_spread(pipeline: Pipeline) -> None:
    """Original speech is attacked in one scenario, which is not divided."""
    whole = read_pipeline(goldens.compiled("tiny"))
    before, after = ({task.title for task in each.tasks} for each in (whole, pipeline))
    systems = ("anon", "anon_dp", "original")
    attacked = systems[:2]
    assert before - after == {*(f"anonymize {s}" for s in systems), *(f"score {s}" for s in attacked)}
    spread = {f"anonymize_share {s} {n}-of-3" for s in systems for n in (1, 2, 3)}
    spread |= {f"score_share {s} {n}-of-2" for s in attacked for n in (1, 2)}
    gathers = {*(f"anonymize_gather {s}" for s in systems), *(f"score_gather {s}" for s in attacked)}
    assert after - before == spread | gathers


def test_who_took_from_the_stage_takes_from_the_gather(pipeline: Pipeline) -> None:
    titles = {task.name: task.title for task in pipeline.tasks}
    whole = read_pipeline(goldens.compiled("tiny"))
    before = {task.name: task.title for task in whole.tasks}
    for task in whole.tasks:
        stage, _, system = task.title.partition(" ")
        if stage not in ("train_attacker", "transcribe", "evaluate"):
            continue
        for kind, source in (("artifacts", "taskOutputArtifact"), ("parameters", "taskOutputParameter")):
            for name, given in task.inputs[kind].items():
                if source not in given:
                    continue
                wanted = before[given[source]["producerTask"]]
                got = named(pipeline, task.title).inputs[kind][name][source]["producerTask"]
                assert titles[got] in (wanted, f"{wanted.partition(' ')[0]}_gather {system}")


def test_a_gather_gets_the_location_of_every_share(pipeline: Pipeline) -> None:
    results = {
        task.name: {name: f"{task.title}: {name}" for name in task.output_parameters}
        for task in pipeline.tasks
    }
    for task in pipeline.tasks:
        stage, _, system = task.title.partition(" ")
        if gather_of(stage):
            count = 3 if stage.startswith("anonymize") else 2
            kind = f"{gather_of(stage)}_share {system}"
            wanted = [f"{kind} {n}-of-{count}: made_location" for n in range(1, count + 1)]
            assert pipeline.resolve(task, {}, results)["shares"] == wanted
            assert task.inputs["artifacts"] == {}


def test_pods_of_shares_get_what_the_stage_gets(pipeline: Pipeline) -> None:
    whole = read_pipeline(goldens.compiled("tiny"))
    one = named(whole, "anonymize anon_dp")
    part = named(pipeline, "anonymize_share anon_dp 2-of-3")
    assert (part.image, part.retry, part.cached) == (one.image, one.retry, False)
    labels = {"labels": {"voxveil/stage": "anonymize_share"}}
    assert part.kubernetes == {**one.kubernetes, "podMetadata": labels}
    assert any(
        item["configMapKey"] == "VOXVEIL_LEDGER"
        for reference in part.kubernetes["configMapAsEnv"]
        for item in reference["keyToEnv"]
    )
    gather = named(pipeline, "anonymize_gather anon_dp")
    assert not gather.cached
    assert "nodeSelector" not in gather.kubernetes
    assert [reference["secretName"] for reference in gather.kubernetes["secretAsEnv"]] == ["voxveil-store"]


def test_so_many_run_at_once_as_the_parameters_say(root: Path) -> None:
    assert goldens.compiled(goldens.SHARDS).count("parallelismLimit: 2") == 5
    params = compose(root / "params/tiny.yaml", {"cluster.anonymize_shards": "2"})
    assert "parallelismLimit" not in compile_pipeline(root, params, Images("a@sha256:0", "b@sha256:0"))


def test_a_retraining_is_spread_as_well(root: Path) -> None:
    params = compose(root / "params/tiny.yaml", {"cluster.anonymize_shards": "2"})
    text = compile_pipeline(root, params, Images("a@sha256:0", "b@sha256:0"), "retrain")
    titles = {task.title for task in read_pipeline(text).tasks}
    assert {f"anonymize_share anon_dp {n}-of-2" for n in (1, 2)} <= titles
    assert {"anonymize_gather anon_dp", "score anon_dp"} <= titles


def test_steps_are_those_of_stages_that_can_be_shared() -> None:
    can = {spec.name for spec in STAGES if spec.shared}
    assert {share_of(step.name) for step in STEPS} - {""} == can == {"anonymize", "score"}
    assert {gather_of(step.name) for step in STEPS} - {""} == can


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setitem(sys.modules, "voxveil.stages.score", stand_ins.Score())
    tiny = compose(goldens.ROOT / "params/tiny.yaml", {"cluster.score_shards": "3"})
    return messages.as_floats(to_mapping(tiny))


def share_call(pipeline: Pipeline, tmp_path: Path, params: dict[str, Any], which: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {"params": params, "key": "anon", "share": which}
    artifacts = {}
    for name, producer, key in (
        ("attacker", "train_attacker", "anon"),
        ("original_attacker", "train_attacker", "original"),
        ("released", "anonymize", "anon"),
        ("public", "prepare", ""),
        ("private", "prepare", ""),
    ):
        artifacts[name] = tmp_path / "in" / name
        parameters[f"{name}_digest"] = messages.made(artifacts[name], producer, key).digest
    call = messages.message("score_share", tmp_path / which, parameters, artifacts)
    call["outputs"]["parameters"]["made_location"] = {"outputFile": str(tmp_path / which / "made_location")}
    return call


def gather_call(tmp_path: Path, params: dict[str, Any], entries: list[str]) -> dict[str, Any]:
    return messages.message(
        "score_gather", tmp_path / "all", {"params": params, "key": "anon", "shares": entries}, {}
    )


@pytest.fixture
def entries(pipeline: Pipeline, params: dict[str, Any], tmp_path: Path) -> list[str]:
    """Run the three shares as a launcher asks; return what the loop collects of them."""
    found = []
    for number in (1, 2, 3):
        call = share_call(pipeline, tmp_path, params, f"{number}-of-3")
        assert run_step("score-share", json.dumps(call)) == 0
        reported, _ = check_outputs(named(pipeline, "score_share anon 1-of-2"), call)
        found.append(reported["made_location"])
    return found


def test_shares_and_gather_speak_to_a_launcher(
    entries: list[str], params: dict[str, Any], tmp_path: Path
) -> None:
    assert [entry.split(" ")[:2] for entry in entries] == [
        ["anon", str(tmp_path / f"{number}-of-3/made")] for number in (1, 2, 3)
    ]
    assert read_json(tmp_path / "2-of-3/made" / SHARE)["share"] == "2-of-3"
    assert run_step("score-gather", json.dumps(gather_call(tmp_path, params, entries[::-1]))) == 0
    done = require_done(tmp_path / "all/scores", "scores")
    assert (done.stage, done.key, done.output) == ("score", "anon", "scores")
    assert sorted(done.files) == [f"ecapa/{name}/scores.json" for name in "abc"]
    assert messages.reported(tmp_path / "all")["parameterValues"] == {"scores_digest": done.digest}


@pytest.mark.parametrize(
    ("spoil", "kind", "why"),
    [
        (lambda e: e.pop(), InputError, r"share 3-of-3 is missing \(1 of 3 are\)"),
        (lambda e: e.clear(), InputError, r"share 1-of-3 is missing \(3 of 3 are\)"),
        (lambda e: e.append(e[0]), InputError, "share 1-of-3 is there twice"),
        (
            lambda e: e.__setitem__(1, e[1].replace("anon", "other", 1)),
            InputError,
            "is of system other, must be of anon",
        ),
        (lambda e: e.__setitem__(1, "anon"), InputError, "must be 'SYSTEM URI DIGEST', got 'anon'"),
        (
            lambda e: e.__setitem__(1, location("anon", e[1].split(" ")[1], "0" * 64)),
            IncompleteInputError,
            f"has digest .*, expected {'0' * 64}",
        ),
        (lambda e: shutil.rmtree(e[1].split(" ")[1]), InputError, "2-of-3/made: no such folder"),
    ],
)
def test_a_gather_takes_all_or_nothing(
    entries: list[str], params: dict[str, Any], tmp_path: Path, spoil: Any, kind: type[VoxveilError], why: str
) -> None:
    spoil(entries)
    with pytest.raises(kind, match=why):
        run_step("score-gather", json.dumps(gather_call(tmp_path, params, entries)))
    assert not (tmp_path / "all/scores").exists()


def test_params_that_want_other_shares_than_the_file_are_refused(
    pipeline: Pipeline, params: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(
        ParamsError, match=r"cluster\.score_shards: params want 3, .*compiled with 2; compile it"
    ):
        run_step("score-share", json.dumps(share_call(pipeline, tmp_path, params, "1-of-2")))
    assert not (tmp_path / "1-of-2/made").exists()


def test_a_share_refuses_what_the_stage_refuses(
    pipeline: Pipeline, params: dict[str, Any], tmp_path: Path
) -> None:
    call = share_call(pipeline, tmp_path, params, "1-of-3")
    call["inputs"]["parameterValues"]["released_digest"] = "0000"
    with pytest.raises(IncompleteInputError, match="released.*expected 0000"):
        run_step("score-share", json.dumps(call))
    call = share_call(pipeline, tmp_path, params, "1-of-3")
    call["inputs"]["parameterValues"]["key"] = "anon_dp"
    with pytest.raises(ParamsError, match=r"want attacker of train_attacker 'anon_dp'.*compiled with 'anon'"):
        run_step("score-share", json.dumps(call))


def test_no_share_changes_a_stage(root: Path) -> None:
    """The section is read by no stage: DVC makes nothing anew for it, and nothing is charged anew."""
    from voxveil.stages.run import fingerprint

    params = compose(root / "params/tiny.yaml")
    shared = dataclasses.replace(params, cluster=dataclasses.replace(params.cluster, anonymize_shards=9))
    for spec in STAGES:
        key = {"system": "anon", "pitch_variant": "dp", "content_variant": "dp"}.get(spec.keyed, "")
        assert fingerprint(spec, key, params, {}) == fingerprint(spec, key, shared, {})
    assert "cluster" not in (root / "dvc.yaml").read_text()
