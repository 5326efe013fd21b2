"""The compiled pipeline: equal to the reviewed file, and nothing in it that fails on a cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

pytest.importorskip("kfp", reason="needs the pipeline extra")

import goldens

from voxveil.cli.main import main
from voxveil.config.compose import compose, params_text
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.graph import Pipeline, Task, read_pipeline
from voxveil.kubeflow.pods import Images, load_images, load_resources
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import STAGES, StageSpec, stage_spec

SPECS = {spec.name: spec for spec in STAGES}


@pytest.fixture(scope="module", params=goldens.SCALES)
def scale(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def text(scale: str) -> str:
    return goldens.compiled(scale)


@pytest.fixture(scope="module")
def pipeline(text: str) -> Pipeline:
    return read_pipeline(text)


def stage_of(task: Task) -> StageSpec:
    return stage_spec(stage_name(task))


def test_equals_the_reviewed_file(scale: str) -> None:
    goldens.check(scale)


def test_hash_seed_does_not_move_a_byte() -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import goldens; print(goldens.compiled('tiny'))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", script, str(goldens.HERE)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_order_of_systems_does_not_move_a_byte(root: Path) -> None:
    params = goldens.params_of("tiny")
    params.systems.update(dict(reversed([(name, params.systems.pop(name)) for name in list(params.systems)])))
    assert list(params.systems) != list(goldens.params_of("tiny").systems)
    images = load_images(goldens.HERE / "images.lock.json")
    assert compile_pipeline(root, params, images) == goldens.compiled("tiny")


def test_kubeflow_itself_reads_it(text: str) -> None:
    from kfp import components

    component = components.load_component_from_text(text)
    assert list(component.pipeline_spec.root.input_definitions.parameters) == ["params"]


def test_two_documents(text: str) -> None:
    documents = list(yaml.safe_load_all(text))
    assert len(documents) == 2
    assert list(documents[1]) == ["platforms"]


def test_nothing_is_installed_at_start_and_no_tag_moves(text: str) -> None:
    assert "pip install" not in text
    assert "latest" not in text
    images = re.findall(r"image: (\S+)", text)
    assert images
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in images)


def test_every_system_and_variant_has_its_tasks(scale: str, pipeline: Pipeline, root: Path) -> None:
    params = compose(root / "params" / f"{scale}.yaml")
    keys = {
        "": [""],
        "system": list(params.systems),
        "pitch_variant": list(params.pitch_variants),
        "content_variant": list(params.content_variants),
    }
    expected = {f"{spec.name} {key}".strip() for spec in STAGES for key in keys[spec.keyed]}
    assert {task.title for task in pipeline.tasks} == expected
    assert len(pipeline.tasks) == len(expected)


def test_task_runs_its_stage_with_its_key(pipeline: Pipeline) -> None:
    for task in pipeline.tasks:
        stage, _, key = task.title.partition(" ")
        assert task.command == (
            "voxveil",
            "stage",
            SPECS[stage].command,
            "--executor-input",
            "{{$}}",
        )
        constant = task.inputs["parameters"].get("key", {}).get("runtimeValue", {}).get("constant", "")
        assert constant == key


def test_values_come_in_one_parameter(scale: str, pipeline: Pipeline, root: Path) -> None:
    from voxveil.config import parse_params

    assert list(pipeline.defaults) == ["params"]
    assert parse_params(pipeline.defaults["params"], complete=True) == compose(root / f"params/{scale}.yaml")
    for task in (*pipeline.tasks, pipeline.exit):
        assert task.inputs["parameters"]["params"] == {"componentInputParameter": "params"}


def test_every_artifact_travels_with_its_digest(pipeline: Pipeline) -> None:
    for task in pipeline.tasks:
        for name, source in task.inputs.get("artifacts", {}).items():
            artifact = source["taskOutputArtifact"]
            digest = task.inputs["parameters"][f"{name}_digest"]["taskOutputParameter"]
            assert digest["producerTask"] == artifact["producerTask"]
            assert digest["outputParameterKey"] == f"{artifact['outputArtifactKey']}_digest"


def test_systems_are_wired_to_their_variants(scale: str, pipeline: Pipeline, root: Path) -> None:
    params = compose(root / "params" / f"{scale}.yaml")
    titles = {task.name: task.title for task in pipeline.tasks}
    for task in pipeline.tasks:
        stage, _, key = task.title.partition(" ")
        sources = {
            name: titles[source["taskOutputArtifact"]["producerTask"]]
            for name, source in task.inputs.get("artifacts", {}).items()
        }
        if stage in ("train_synthesis", "bundle"):
            assert sources["pitch"] == f"train_pitch {params.systems[key].pitch}"
            assert sources["content"] == f"train_content {params.systems[key].content}"
        if stage == "transcribe":
            assert sources["recognizer"] == f"train_content {params.transcribe.variant}"
        if stage == "score":
            assert sources["original_attacker"] == f"train_attacker {params.score.original}"
        for name, title in sources.items():
            producer, _, produced = title.partition(" ")
            if name == "original_attacker":
                continue
            if SPECS[producer].keyed == "system":
                assert produced == key


def test_caching_is_off_in_the_file_for_noise_and_attacks(pipeline: Pipeline) -> None:
    for task in pipeline.tasks:
        assert task.cached == stage_of(task).cacheable, task.title
    uncached = {stage_of(task).name for task in pipeline.tasks if not task.cached}
    assert {"anonymize", "train_attacker", "score"} <= uncached


def test_a_corpus_outside_the_store_is_never_cached(root: Path) -> None:
    import dataclasses

    params = compose(root / "params/tiny.yaml")
    outside = dataclasses.replace(params, prepare=dataclasses.replace(params.prepare, source="/data/corpus"))
    pipeline = read_pipeline(compile_pipeline(root, outside, Images("a@sha256:0", "b@sha256:0")))
    assert not next(task for task in pipeline.tasks if task.title == "prepare").cached
    # What comes after it takes its digest as a parameter, so it may be cached.
    assert next(task for task in pipeline.tasks if task.title == "train_speaker").cached


def test_gpu_stages_get_one_gpu_a_selector_and_a_toleration(text: str, pipeline: Pipeline) -> None:
    executors = yaml.safe_load(text.split("\n---\n")[0])["deploymentSpec"]["executors"]
    for task in pipeline.tasks:
        container = executors[task.component["executorLabel"]]["container"]
        accelerator = container["resources"].get("accelerator")
        if stage_of(task).gpu:
            assert accelerator["resourceType"] == accelerator["type"] == "nvidia.com/gpu"
            assert accelerator["resourceCount"] == "1"
            assert task.kubernetes["nodeSelector"]["labels"] == {"nvidia.com/gpu.present": "true"}
            assert task.kubernetes["tolerations"] == [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
            ]
        else:
            assert accelerator is None
            assert "nodeSelector" not in task.kubernetes
            assert "tolerations" not in task.kubernetes


def test_pods_have_label_timeout_retries_and_resources(text: str, pipeline: Pipeline, root: Path) -> None:
    executors = yaml.safe_load(text.split("\n---\n")[0])["deploymentSpec"]["executors"]
    for task in pipeline.tasks:
        wanted = load_resources(root / "components" / stage_of(task).name / "resources.yaml")
        container = executors[task.component["executorLabel"]]["container"]
        assert task.kubernetes["podMetadata"]["labels"] == {"voxveil/stage": stage_of(task).name}
        assert int(task.kubernetes["activeDeadlineSeconds"]) == wanted.timeout_s
        assert task.retry["maxRetryCount"] == wanted.retries
        assert container["resources"]["resourceCpuLimit"] == wanted.cpu
        assert container["resources"]["resourceMemoryLimit"] == wanted.memory
        assert f"voxveil-{wanted.image}@" in container["image"]


def test_a_training_gets_the_gpus_that_its_parameters_share_it_between(root: Path) -> None:
    import dataclasses

    params = compose(root / "params/tiny.yaml")
    shared = dataclasses.replace(params, train_vocoder=dataclasses.replace(params.train_vocoder, gpus=4))
    text = compile_pipeline(root, shared, Images("a@sha256:0", "b@sha256:0"))
    executors = yaml.safe_load(text.split("\n---\n")[0])["deploymentSpec"]["executors"]
    for task in read_pipeline(text).tasks:
        count = 4 if task.title == "train_vocoder" else 1
        container = executors[task.component["executorLabel"]]["container"]
        if stage_of(task).gpu:
            assert container["resources"]["accelerator"]["resourceCount"] == str(count)
        wanted = load_resources(root / "components" / stage_of(task).name / "resources.yaml")
        assert container["resources"]["resourceCpuLimit"] == str(count * int(wanted.cpu))
        assert container["resources"]["resourceMemoryLimit"] == f"{count * int(wanted.memory[:-2])}Gi"
        memory = [each["mountPath"] for each in task.kubernetes["emptyDirMounts"] if "medium" in each]
        assert memory == (["/dev/shm"] if count > 1 else [])  # noqa: S108


def test_secrets_are_named_never_written(text: str, pipeline: Pipeline) -> None:
    holders: dict[str, set[str]] = {}
    for task in (*pipeline.tasks, pipeline.exit):
        assert task is not None
        for reference in task.kubernetes.get("secretAsEnv", []):
            holders.setdefault(reference["secretName"], set()).add(stage_name(task))
        assert not any(word in name for name in task.environment for word in ("SECRET", "KEY", "PASSWORD"))
    training = {spec.name for spec in STAGES if spec.name.startswith("train_")}
    assert holders == {
        "voxveil-store": {"anonymize", "report"},
        "voxveil-mlflow": {*training, "report", "close_run"},
        "voxveil-webhook": {"close_run"},
    }


def stage_name(task: Task) -> str:
    return task.title.split(" ")[0]


def test_checkpoints_of_training_outlive_the_pod(pipeline: Pipeline) -> None:
    for task in pipeline.tasks:
        mounts = [(mount["constant"], mount["mountPath"]) for mount in task.kubernetes.get("pvcMount", [])]
        if stage_of(task).name.startswith("train_"):
            assert mounts == [("voxveil-checkpoints", "/checkpoints")]
            assert task.environment == {"VOXVEIL_CHECKPOINTS": "/checkpoints"}
        else:
            assert mounts == []
            assert task.environment == {}


def test_the_exit_task_closes_the_run(pipeline: Pipeline) -> None:
    assert pipeline.exit is not None
    assert pipeline.exit.command[:4] == ("voxveil", "pipeline", "step", "close-run")
    assert not pipeline.exit.cached
    assert pipeline.exit.inputs["parameters"]["status"] == {
        "taskFinalStatus": {"producerTask": "exit-handler-1"}
    }


FILES = {"params": "params.yaml", "images": "images.json", "out": "pipeline.yaml"}


def test_a_hundred_and_twenty_systems_meet_in_one_table(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    from kfp.compiler import pipeline_spec_builder

    params = compose(root / "params/tiny.yaml")
    systems = {f"eps_{number:03d}": params.systems["anon_dp"] for number in range(120)}
    many = dataclasses.replace(params, systems={**systems, "original": params.systems["original"]})
    (tmp_path / "params.yaml").write_text(params_text(many))
    (tmp_path / "images.json").write_text(
        json.dumps({"cpu": f"a@sha256:{'0' * 64}", "gpu": f"b@sha256:{'0' * 64}"})
    )
    files = [f"--{name}={tmp_path / file}" for name, file in FILES.items()]
    monkeypatch.chdir(root)
    # Four megabytes of YAML: libyaml writes them in a tenth of the time, and only their content is read here.
    quick = SimpleNamespace(dump_all=partial(yaml.dump_all, Dumper=yaml.CDumper))
    monkeypatch.setattr(pipeline_spec_builder, "yaml", quick)
    assert main(["pipeline", "compile", *files]) == 0
    pipeline = read_pipeline((tmp_path / "pipeline.yaml").read_text())
    report = next(task for task in pipeline.tasks if task.title == "report")
    assert report.inputs.get("artifacts", {}) == {}
    results = {
        task.name: {name: f"{task.title} {name}" for name in task.output_parameters}
        for task in pipeline.tasks
    }
    values = pipeline.resolve(report, {}, results)
    order = ["original", *sorted(systems)]
    assert values["metrics"] == [f"evaluate {name} metrics_location" for name in order]
    assert values["samples"] == [f"anonymize {name} samples_location" for name in order]
    assert values["scores"] == [f"score {name} scores_location" for name in order]


def test_a_pipeline_without_an_original_system_says_so(root: Path) -> None:
    import dataclasses

    params = compose(root / "params/tiny.yaml")
    alone = dataclasses.replace(params, systems={"anon": params.systems["anon"]})
    with pytest.raises(ParamsError, match="score.original: 'original' is no system of kind 'original'"):
        compile_pipeline(root, alone, Images("a@sha256:0", "b@sha256:0"))


def test_no_systems_is_an_error_that_says_so(root: Path) -> None:
    import dataclasses

    params = dataclasses.replace(compose(root / "params/tiny.yaml"), systems={})
    with pytest.raises(ParamsError, match="systems: there are none"):
        compile_pipeline(root, params, Images("a", "b"))
