"""The command ``voxveil pipeline``, and where a stage meets the adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import goldens
import messages
import pytest

from voxveil.cli.main import main
from voxveil.config.compose import params_text
from voxveil.kubeflow.graph import read_arguments, read_pipeline
from voxveil.kubeflow.pods import load_images
from voxveil.runtime.errors import InputError

pytest.importorskip("kfp", reason="needs the pipeline extra")


@pytest.fixture
def params(tmp_path: Path) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(params_text(messages.tiny_params()))
    return path


def test_compile_writes_what_the_library_compiles(params: Path, tmp_path: Path, root: Path) -> None:
    out = tmp_path / "made" / "pipeline.yaml"
    images = goldens.HERE / "images.lock.json"
    arguments = ["--params", str(params), "--images", str(images), "--project", str(root)]
    assert main(["pipeline", "compile", *arguments, "--out", str(out)]) == 0
    assert out.read_text() == goldens.compiled("tiny")


def test_compile_prints_without_out(params: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = goldens.HERE / "images.lock.json"
    arguments = ["--params", str(params), "--images", str(images), "--project", str(root)]
    assert main(["pipeline", "compile", *arguments]) == 0
    assert capsys.readouterr().out == goldens.compiled("tiny")


def test_without_images_nothing_is_compiled(
    params: Path, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pipeline.yaml"
    arguments = ["--params", str(params), "--images", str(tmp_path / "none.json"), "--project", str(root)]
    assert main(["pipeline", "compile", *arguments, "--out", str(out)]) == 2
    assert "none.json: no such file; it names the images by digest" in capsys.readouterr().err
    assert not out.exists()


def test_outside_a_checkout_it_says_so(
    params: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = goldens.HERE / "images.lock.json"
    arguments = ["--params", str(params), "--images", str(images), "--project", str(tmp_path)]
    assert main(["pipeline", "compile", *arguments]) == 2
    assert "run this in a checkout of voxveil" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"cpu": "voxveil-cpu:1.0", "gpu": "voxveil-gpu:1.0"}, "cpu: must be NAME@sha256:64-HEX-DIGITS"),
        ({"cpu": "voxveil-cpu:latest", "gpu": "x"}, "not a tag; got 'voxveil-cpu:latest'"),
        ({"cpu": f"a@sha256:{'0' * 64}", "gpu": f"a@sha256:{'0' * 63}"}, "gpu: must be NAME@sha256"),
        ({"cpu": f"a@sha256:{'0' * 64}"}, "must have exactly the keys cpu, gpu"),
        ([], "must have exactly the keys cpu, gpu"),
    ],
)
def test_images_are_digests_or_refused(content: object, text: str, tmp_path: Path) -> None:
    path = tmp_path / "images.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=text):
        load_images(path)


def test_run_elsewhere_is_refused(
    params: Path, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--params", str(params), "--root", str(tmp_path / "run"), "--project", str(root)]
    assert main(["pipeline", "run", *arguments]) == 2
    assert "'pipeline submit' starts a run on a cluster" in capsys.readouterr().err


def test_without_docker_the_run_says_what_works_without_it(
    params: Path,
    tmp_path: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none.sock'}")
    arguments = ["--params", str(params), "--root", str(tmp_path / "run"), "--project", str(root)]
    assert main(["pipeline", "run", "--local", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("voxveil: error: Docker cannot be reached (")
    assert line.endswith("--no-docker runs without it")
    assert not (tmp_path / "run").exists()


def test_an_unknown_pipeline_is_named(params: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = goldens.HERE / "images.lock.json"
    arguments = ["--params", str(params), "--images", str(images), "--project", str(root)]
    assert main(["pipeline", "compile", *arguments, "--pipeline", "nothing"]) == 2
    known = "evaluate_external, evaluate_external_audio, probe_features, retrain, train_and_evaluate"
    assert f"--pipeline nothing: not there; pipelines: {known}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["location"], "--set location: must be NAME=VALUE"),
        (["place=x"], "has no argument 'place'; it has: attacker, location, params, scenario"),
        (["location=a", "location=b"], "location is given twice"),
        (["params=[1]"], "must be an object as JSON"),
        (["params={"], "must be an object as JSON"),
    ],
)
def test_wrong_arguments_are_named(settings: list[str], text: str) -> None:
    pipeline = read_pipeline(goldens.compiled("tiny", "evaluate_external"))
    with pytest.raises(InputError) as caught:
        read_arguments(pipeline, settings)
    assert text in str(caught.value)


def test_arguments_have_the_type_of_the_pipeline() -> None:
    pipeline = read_pipeline(goldens.compiled("tiny", "evaluate_external"))
    found = read_arguments(pipeline, ["location=s3://b/k=1", 'params={"a": 1}'])
    assert found == {"location": "s3://b/k=1", "params": {"a": 1}}


def test_a_stage_command_takes_the_launchers_message(tmp_path: Path) -> None:
    """An input that is not there ends it with one line, before anything is written."""
    call = messages.message(
        "evaluate",
        tmp_path / "out",
        {
            "params": messages.tiny(),
            "key": "anon",
            **{f"{name}_digest": "0f" for name in ("scores", "transcripts", "released")},
        },
        {name: tmp_path / name for name in ("scores", "transcripts", "released")},
    )
    result = subprocess.run(
        ["voxveil", "stage", "evaluate", "--executor-input", json.dumps(call)],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith(f"voxveil: error: input scores: {tmp_path / 'scores'} does not exist")
    assert not (tmp_path / "out").exists()
