"""The adapter: what it takes from a launcher, what it hands to a stage, what it reports back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import messages
import pytest

from voxveil.kubeflow import run_executor_input
from voxveil.kubeflow.ends import ExecutorInput, local_path
from voxveil.kubeflow.fan_in import collect, location
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import IncompleteInputError, InputError, ParamsError
from voxveil.stages.registry import stage_spec


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))

    def replace(name: str, numbers: dict[str, Any] | None = None) -> messages.Recorder:
        recorder = messages.Recorder(stage_spec(name), numbers)
        monkeypatch.setitem(sys.modules, f"voxveil.stages.{name}", recorder)
        return recorder

    return replace


def evaluate_call(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    parameters = {"params": messages.tiny(), "key": "anon"}
    artifacts = {}
    for name, producer in (("scores", "score"), ("transcripts", "transcribe"), ("released", "anonymize")):
        artifacts[name] = tmp_path / "in" / name
        parameters[f"{name}_digest"] = messages.made(artifacts[name], producer, "anon").digest
    return messages.message("evaluate", tmp_path / "out", parameters | changes, artifacts)


def test_a_stage_gets_inputs_key_and_whole_numbers(stage: Any, tmp_path: Path) -> None:
    recorder = stage("evaluate")
    assert run_executor_input("evaluate", json.dumps(evaluate_call(tmp_path))) == 0
    (context,) = recorder.contexts
    assert context.key == "anon"
    assert context.inputs["scores"] == tmp_path / "in/scores"
    assert context.params == messages.tiny_params()
    assert isinstance(context.params.evaluate.replicates, int)


def test_params_may_come_as_text(stage: Any, tmp_path: Path) -> None:
    recorder = stage("evaluate")
    call = evaluate_call(tmp_path, params=json.dumps(messages.tiny()))
    assert run_executor_input("evaluate", json.dumps(call)) == 0
    assert recorder.contexts[0].params.base.scale == "tiny"


def test_digests_location_and_metadata_are_reported(stage: Any, tmp_path: Path) -> None:
    stage("evaluate", {"privacy/eer": 12.5, "privacy/epsilon": "inf", "n": 3, "flag": True, "gone": None})
    call = evaluate_call(tmp_path)
    run_executor_input("evaluate", json.dumps(call))
    written = messages.reported(tmp_path / "out")
    digest = require_done(tmp_path / "out/metrics", "metrics").digest
    assert written["parameterValues"] == {
        "metrics_digest": digest,
        "metrics_location": f"anon {tmp_path / 'out/metrics'} {digest}",
    }
    folder = written["artifacts"]["metrics"]["artifacts"][0]
    assert folder["uri"] == str(tmp_path / "out/metrics")
    assert folder["metadata"] == {
        "stage": "evaluate",
        "key": "anon",
        "secrecy": "public",
        "digest": digest,
        "files": 2,
    }
    # Numbers only: text, null and truth values are no metrics, and Kubeflow refuses what is not finite.
    numbers = written["artifacts"]["flat"]["artifacts"][0]["metadata"]
    assert {name: value for name, value in numbers.items() if name not in ("stage", "key", "secrecy")} == {
        "privacy/eer": 12.5,
        "n": 3,
    }


def test_kubeflow_itself_reads_the_report(stage: Any, tmp_path: Path) -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    stage("evaluate", {"privacy/eer": 12.5})
    run_executor_input("evaluate", json.dumps(evaluate_call(tmp_path)))
    output = pipeline_spec_pb2.ExecutorOutput()
    json_format.Parse((tmp_path / "out/executor_output.json").read_text(), output)
    assert output.artifacts["flat"].artifacts[0].metadata["privacy/eer"] == 12.5


def test_an_input_that_differs_from_its_digest_is_refused(stage: Any, tmp_path: Path) -> None:
    recorder = stage("evaluate")
    with pytest.raises(IncompleteInputError, match="scores.*expected 0000"):
        run_executor_input("evaluate", json.dumps(evaluate_call(tmp_path, scores_digest="0000")))
    assert recorder.contexts == []
    assert not (tmp_path / "out").exists()


def test_an_input_without_a_digest_is_refused(stage: Any, tmp_path: Path) -> None:
    stage("evaluate")
    call = evaluate_call(tmp_path)
    del call["inputs"]["parameterValues"]["scores_digest"]
    with pytest.raises(InputError, match="parameter scores_digest is missing"):
        run_executor_input("evaluate", json.dumps(call))


def test_outputs_for_another_system_are_refused(stage: Any, tmp_path: Path) -> None:
    stage("evaluate")
    with pytest.raises(ParamsError, match=r"want scores of score 'original'.*compiled with 'anon'"):
        run_executor_input("evaluate", json.dumps(evaluate_call(tmp_path, key="original")))


def test_params_that_want_another_variant_are_refused(stage: Any, tmp_path: Path) -> None:
    recorder = stage("train_synthesis")
    parameters: dict[str, Any] = {"params": messages.tiny(), "key": "anon_dp"}
    artifacts = {}
    for name, producer, key in (
        ("public", "prepare", ""),
        ("pitch", "train_pitch", "dp"),
        ("content", "train_content", "dp"),
        ("speaker", "train_speaker", ""),
    ):
        artifacts[name] = tmp_path / "in" / name
        parameters[f"{name}_digest"] = messages.made(artifacts[name], producer, key).digest
    call = messages.message("train_synthesis", tmp_path / "out", parameters, artifacts)
    assert run_executor_input("train_synthesis", json.dumps(call)) == 0
    parameters["params"]["systems"]["anon_dp"]["content"] = "plain"
    with pytest.raises(ParamsError, match=r"anon_dp: params want content of train_content 'plain'.*'dp'"):
        run_executor_input("train_synthesis", json.dumps(call))
    assert len(recorder.contexts) == 1


def test_transcribe_takes_the_recognizer_of_the_params(stage: Any, tmp_path: Path) -> None:
    stage("transcribe")
    parameters: dict[str, Any] = {"params": messages.tiny(), "key": "anon"}
    artifacts = {}
    for name, producer, key in (
        ("recognizer", "train_content", "dp"),
        ("released", "anonymize", "anon"),
        ("private", "prepare", ""),
    ):
        artifacts[name] = tmp_path / "in" / name
        parameters[f"{name}_digest"] = messages.made(artifacts[name], producer, key).digest
    call = messages.message("transcribe", tmp_path / "out", parameters, artifacts)
    with pytest.raises(ParamsError, match=r"recognizer of train_content 'plain'.*compiled with 'dp'"):
        run_executor_input("transcribe", json.dumps(call))
    parameters["params"]["transcribe"]["variant"] = "dp"
    assert run_executor_input("transcribe", json.dumps(call)) == 0


def report_call(tmp_path: Path, placeholders: bool = False) -> dict[str, Any]:
    parameters: dict[str, Any] = {"params": messages.tiny()}
    for port, producer in (("metrics", "evaluate"), ("samples", "anonymize")):
        texts = []
        for number, system in enumerate(("anon", "anon_dp", "original")):
            folder = tmp_path / "a folder" / port / system
            digest = messages.made(folder, producer, system, text=f"{port} {system}").digest
            texts.append(location(system, str(folder), digest))
            if placeholders:
                channel = f"pipelinechannel--{producer}-{number}-{port}_location"
                parameters[channel] = texts[-1]
                texts[-1] = "{{$.inputs.parameters['" + channel + "']}}"
        parameters[port] = texts
    parameters["training"] = ["train_pitch.dp f00d", "train_vocoder beef"]
    parameters["scores"] = [location("anon", "s3://runs/scores", "0f" * 32)]
    return messages.message("report", tmp_path / "out", parameters, {})


@pytest.mark.parametrize("placeholders", [False, True], ids=["values", "unfilled constants"])
def test_fan_in_gives_one_folder_per_system(stage: Any, tmp_path: Path, placeholders: bool) -> None:
    seen = {}

    def run(context: Any) -> None:
        for port in ("metrics", "samples"):
            for folder in context.inputs[port].iterdir():
                seen[port, folder.name] = (folder / "file.txt").read_text()
        seen["training"] = context.training
        (context.outputs["report"] / "index.html").write_text("<p>page</p>")

    stage("report").run = run
    assert run_executor_input("report", json.dumps(report_call(tmp_path, placeholders))) == 0
    assert seen.pop("training") == {"train_pitch.dp": "f00d", "train_vocoder": "beef"}
    assert seen == {
        (port, system): f"{port} {system}"
        for port in ("metrics", "samples")
        for system in ("anon", "anon_dp", "original")
    }


def test_the_page_is_one_file_and_its_folder_an_artifact_beside_it(stage: Any, tmp_path: Path) -> None:
    stage("report")
    run_executor_input("report", json.dumps(report_call(tmp_path)))
    assert (tmp_path / "out/report").read_text() == "<p>page</p>"
    done = require_done(tmp_path / "out/report_files", "report")
    written = messages.reported(tmp_path / "out")
    assert written["parameterValues"] == {"report_digest": done.digest}
    assert set(written["artifacts"]) == {"report", "report_files"}


def test_a_training_reports_the_fingerprint_of_its_run(stage: Any, tmp_path: Path) -> None:
    recorder = stage("train_pitch", {"loss": 1.0})
    folder = tmp_path / "in/public"
    digest = messages.made(folder, "prepare").digest
    parameters = {"params": messages.tiny(), "key": "dp", "public_digest": digest}
    call = messages.message("train_pitch", tmp_path / "out", parameters, {"public": folder})
    assert run_executor_input("train_pitch", json.dumps(call)) == 0
    (context,) = recorder.contexts
    reported = messages.reported(tmp_path / "out")["parameterValues"]["fingerprint"]
    assert reported == f"train_pitch.dp {context.fingerprint}"


@pytest.mark.parametrize("training", ["train_pitch.dp f00d", ["train_pitch.dp"], [3], ["a b c"]])
def test_trainings_of_another_form_are_refused(stage: Any, tmp_path: Path, training: Any) -> None:
    stage("report")
    call = report_call(tmp_path)
    call["inputs"]["parameterValues"]["training"] = training
    with pytest.raises(InputError, match="input training: must be a list of 'TRAINING FINGERPRINT'"):
        run_executor_input("report", json.dumps(call))


@pytest.mark.parametrize("scores", [None, "anon s3://runs/scores", ["anon s3://runs/scores 0f"]])
def test_locations_of_scores_of_another_form_are_refused(stage: Any, tmp_path: Path, scores: Any) -> None:
    recorder = stage("report")
    call = report_call(tmp_path)
    call["inputs"]["parameterValues"]["scores"] = scores
    if scores is None:
        del call["inputs"]["parameterValues"]["scores"]
    with pytest.raises(InputError, match="input scores: must be .*'SYSTEM URI DIGEST'"):
        run_executor_input("report", json.dumps(call))
    assert recorder.contexts == []


def test_fan_in_verifies_what_it_fetched(stage: Any, tmp_path: Path) -> None:
    recorder = stage("report")
    call = report_call(tmp_path)
    (tmp_path / "a folder/samples/anon/file.txt").write_text("changed")
    with pytest.raises(IncompleteInputError, match="samples of anon .*file.txt changed"):
        run_executor_input("report", json.dumps(call))
    assert recorder.contexts == []


@pytest.mark.parametrize(
    ("entries", "kind", "text"),
    [
        ("anon", InputError, "must be a list"),
        (None, InputError, "must be a list"),
        (["anon /x"], InputError, "must be 'SYSTEM URI DIGEST', got 'anon /x'"),
        ([f"anon /x {'0' * 64}"] * 2, InputError, "system anon is given twice"),
        ([f"anon /x {'0' * 64}"], ParamsError, "compiled for systems anon, params have anon, original"),
        ([f"{s} /x {'0' * 64}" for s in ("anon", "original")], InputError, "/x: no such folder"),
    ],
)
def test_wrong_entries_are_named(entries: Any, kind: type[Exception], text: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=text):
        collect(entries, tmp_path / "in", "metrics", ["original", "anon"])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://bucket/a/b", "/s3/bucket/a/b"),
        ("minio://bucket/a", "/minio/bucket/a"),
        ("gs://bucket/a", "/gcs/bucket/a"),
        ("file:///a/b", "/a/b"),
        ("/a/b", "/a/b"),
    ],
)
def test_paths_are_the_launchers(uri: str, path: str) -> None:
    assert local_path(uri) == Path(path)
    if uri.startswith(("s3", "minio", "gs")):
        dsl = pytest.importorskip("kfp.dsl", reason="needs the pipeline extra")
        assert dsl.Artifact(uri=uri).path == path


@pytest.mark.parametrize("uri", ["http://host/a", "a/b", ""])
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(InputError, match="must be an absolute path or a URI of"):
        local_path(uri)


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("{{$}}", InputError, "got the unfilled placeholder"),
        ("{", InputError, "not valid JSON"),
        ("[" * 100_000, InputError, "not valid JSON"),
        (
            "[]",
            InputError,
            r"not an executor input of Kubeflow: the message must be an object, got a list \[\]$",
        ),
        ("{}", InputError, "not an executor input of Kubeflow: outputs must be an object, got nothing$"),
        ('{"outputs": {}}', InputError, "outputs.outputFile must be a path, got nothing$"),
        ('{"outputs": {"outputFile": 5}}', InputError, "outputs.outputFile must be a path, got a number 5$"),
        (
            '{"outputs": {"outputFile": "/o"}, "inputs": 5}',
            InputError,
            "inputs must be an object, got a number",
        ),
        (
            '{"outputs": {"outputFile": "/o", "artifacts": {"a": {}}}}',
            InputError,
            "outputs.artifacts.a.artifacts must be a list, got nothing$",
        ),
        (
            '{"outputs": {"outputFile": "/o", "artifacts": {"a": {"artifacts": [{"name": "a"}]}}}}',
            InputError,
            r"outputs.artifacts.a.artifacts\[0\].uri must be text, got nothing$",
        ),
        (
            '{"inputs": {"parameterValues": {"key": null}}, "outputs": {"outputFile": "/o"}}',
            ParamsError,
            "parameter key: null is not allowed",
        ),
        (
            '{"inputs": {"parameterValues": {"key": "null"}}, "outputs": {"outputFile": "/o"}}',
            ParamsError,
            "parameter key: null is not allowed",
        ),
        (
            """{"inputs": {"parameterValues": {"m": ["{{$.inputs.parameters['x']}}"]}}, "outputs":
            {"outputFile": "/o"}}""",
            ParamsError,
            r"parameter m\[0\]: got the unexpanded placeholder",
        ),
    ],
)
def test_what_is_no_message_is_refused(text: str, kind: type[Exception], what: str) -> None:
    with pytest.raises(kind, match=what):
        ExecutorInput.parse(text)


def test_an_output_parameter_that_no_stage_has_is_refused(stage: Any, tmp_path: Path) -> None:
    recorder = stage("evaluate")
    call = evaluate_call(tmp_path)
    call["outputs"]["parameters"]["accuracy"] = {"outputFile": "/o"}
    with pytest.raises(InputError, match="has no output parameter accuracy"):
        run_executor_input("evaluate", json.dumps(call))
    assert recorder.contexts == []


def test_logs_that_a_launcher_publishes_are_left_alone(stage: Any, tmp_path: Path) -> None:
    stage("evaluate")
    call = evaluate_call(tmp_path)
    call["outputs"]["artifacts"]["executor-logs"] = messages.runtime("executor-logs", "/x/executor-logs")
    assert run_executor_input("evaluate", json.dumps(call)) == 0
    assert "executor-logs" not in messages.reported(tmp_path / "out")["artifacts"]


def test_the_adapter_needs_no_kfp(tmp_path: Path) -> None:
    import subprocess

    script = "import sys; sys.modules['kfp'] = None; import voxveil.kubeflow; print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for heavy in ("torch", "boto3", "mlflow", "google.protobuf"):
        assert f"'{heavy}'" not in found
