"""Parameters: strict, typed, composed; every fault is one line with a dotted path."""

from __future__ import annotations

import copy
import dataclasses
import re
import shutil
from functools import reduce
from pathlib import Path

import pytest
import yaml

from voxveil.cli.main import main
from voxveil.config import load_params, parse_params
from voxveil.config.compose import compose, params_text, to_mapping, use_overlay
from voxveil.config.model import Params
from voxveil.config.sections import params_class
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import STAGES, stage_spec
from voxveil.stages.run import fingerprint
from voxveil.tracking.mlflow_names import flat_params

#: What a params file must hold, because dvc.yaml names it.
NEEDED = (
    "base.scale",
    "base.seed",
    "base.threads",
    "prepare.manifest",
    "score.original",
    "transcribe.variant",
    "systems.anon.pitch",
    "systems.anon.content",
    *(field.name for field in dataclasses.fields(Params)),
)


def changed(root: Path, path: str, value: object) -> dict:
    content = to_mapping(compose(root / "params/quickstart.yaml"))
    *sections, last = path.split(".")
    target = content
    for section in sections:
        target = target[section]
    target[last] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("train_pitch.steps", 3.5, "whole number"),
        ("train_pitch.steps", "many", "must be a number"),
        ("train_pitch.steps", True, "must be a number"),
        ("train_pitch.steps", 0, "at least 1"),
        ("train_pitch.steps", None, "null"),
        ("train_vocoder.gpus", 9, "at most 8"),
        ("train_pitch.steps", "{{$.inputs}}", "placeholder"),
        ("train_pitch.learning_rate", float("nan"), "finite"),
        ("train_pitch.learning_rate", 0, "above 0"),
        ("prepare.public", 1, "true or false"),
        ("prepare.on_bad_audio", "ignore", "fail, skip"),
        ("pitch_variants.dp.epsilon", 0, "above 0"),
        ("pitch_variants.dp.epsilon", -1, "at least 0"),
        ("pitch_variants.dp.epsilon", "inf", "finite"),
        ("pitch_variants.plain.epsilon", 3, "identity"),
        ("pitch_variants.dp.mechanism", "gauss", "identity, laplace"),
        ("systems.anon.pitch", "other", "no variant 'other'"),
        ("systems.anon.content", "other", "no variant 'other'"),
        ("transcribe.variant", "other", "no variant 'other'"),
        ("probe.recognizer", "whisper", "hybrid, conformer"),
        ("probe.largest_errors", 101, "at most 100"),
        ("asr.width", 142, "multiple of 2 and of asr.heads (4)"),
        ("asr.kernel", 8, "odd"),
        ("asr.speeds", "0.9,1.1", "must hold 1"),
        ("asr.ctc_weight", 1.5, "at most 1"),
        ("asr.beam", -1, "at least 0"),
        ("systems", ["anon"], "mapping"),
        ("base.unknown", 1, "unknown parameter"),
    ],
)
def test_a_wrong_value_names_its_path(root: Path, path: str, value: object, words: str) -> None:
    with pytest.raises(ParamsError) as error:
        parse_params(changed(root, path, value), complete=True)
    assert str(error.value).startswith(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_system_name_that_is_no_name_is_refused(root: Path) -> None:
    content = changed(root, "systems.anon.pitch", "plain")
    content["systems"]["a/b"] = content["systems"]["anon"]
    with pytest.raises(ParamsError, match=r"^systems\.a/b"):
        parse_params(content)


def test_more_gpus_than_a_step_has_rows_are_refused(root: Path) -> None:
    content = changed(root, "train_synthesis.batch", 3)
    content["train_synthesis"]["gpus"] = 3
    assert parse_params(content, complete=True).train_synthesis.gpus == 3
    content["train_synthesis"]["gpus"] = 4
    with pytest.raises(ParamsError, match=r"^train_synthesis\.gpus: got 4, more than train_synthesis\.batch"):
        parse_params(content, complete=True)


def test_a_missing_key_is_named(root: Path) -> None:
    content = to_mapping(compose(root / "params/tiny.yaml"))
    assert parse_params(content, complete=True).train_content.bottleneck == 256
    del content["train_content"]["bottleneck"]
    assert parse_params(content, complete=True).train_content.bottleneck == 256
    # What dvc.yaml needs, and every section, stands in the file.
    for path in NEEDED:
        *sections, last = path.split(".")
        lacking = copy.deepcopy(content)
        del reduce(lambda part, name: part[name], sections, lacking)[last]
        with pytest.raises(
            ParamsError, match=rf"^{re.escape(path)}: missing; 'voxveil params upgrade' adds it"
        ):
            parse_params(lacking, complete=True)


@pytest.mark.parametrize(("text", "expected"), [("3.0", 3), ("2e+06", 2_000_000), ("7", 7), ("'5'", 5)])
def test_whole_numbers_in_any_writing(root: Path, text: str, expected: int) -> None:
    params = parse_params(changed(root, "train_pitch.steps", yaml.safe_load(text)))
    assert params.train_pitch.steps == expected
    assert isinstance(params.train_pitch.steps, int)


@pytest.mark.parametrize("name", ["tiny", "quickstart"])
def test_written_params_read_back_equal(root: Path, tmp_path: Path, name: str) -> None:
    params = compose(root / "params" / f"{name}.yaml")
    (tmp_path / "params.yaml").write_text(params_text(params))
    assert load_params(tmp_path / "params.yaml") == params


def test_params_use_writes_whole_or_not_at_all(root: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params").mkdir()
    (tmp_path / "params/good.yaml").write_text((root / "params/tiny.yaml").read_text())
    assert main(["params", "use", "good"]) == 0
    before = (tmp_path / "params.yaml").read_text()
    (tmp_path / "params/bad.yaml").write_text("train_pitch: {stepz: 3}\n")
    assert main(["params", "use", "bad"]) != 0
    assert main(["params", "use", "absent"]) != 0
    assert (tmp_path / "params.yaml").read_text() == before
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith("voxveil: error: train_pitch.stepz: unknown parameter")
    assert "known: bad, good" in errors[1]


def test_a_broken_params_file_is_one_line(tmp_path: Path, capsys) -> None:
    (tmp_path / "params.yaml").write_text("a: [1\n")
    assert main(["params", "check", str(tmp_path / "params.yaml")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_set_replaces_single_values_and_is_checked(root: Path, tmp_path: Path) -> None:
    (tmp_path / "params").mkdir()
    shutil.copy(root / "params" / "tiny.yaml", tmp_path / "params")
    path = use_overlay("tiny", tmp_path, {"prepare.source": "/data/x", "content_variants.dp.epsilon": "2"})
    params = load_params(path)
    assert params.prepare.source == "/data/x" and params.prepare.utterances == 6
    assert params.content_variants["dp"].epsilon == 2.0
    assert params.content_variants["dp"].mechanism == "laplace"
    # Nothing after the sign is the empty text.
    emptied = use_overlay("tiny", tmp_path, {"prepare.manifest": ""})
    assert load_params(emptied).prepare.manifest == ""
    use_overlay("tiny", tmp_path, {"prepare.source": "/data/x"})
    with pytest.raises(ParamsError, match=r"prepare\.sorce"):
        use_overlay("tiny", tmp_path, {"prepare.sorce": "/data/x"})
    with pytest.raises(ParamsError, match=r"base\.seed"):
        use_overlay("tiny", tmp_path, {"base.seed": "many"})
    assert load_params(path).prepare.source == "/data/x", "a refused change leaves the file as it was"


def test_the_quickstart_is_short_and_explains_each_knob_of_a_table_once(root: Path) -> None:
    text = params_text(compose(root / "params/quickstart.yaml"))
    assert len(text.splitlines()) <= 150
    for words in ("copy_synthesis", "its pitch variant", "epsilon per utterance", "zCDP"):
        assert text.count(words) == (words != "zCDP"), words


@pytest.mark.parametrize("name", ["tiny", "quickstart", "librispeech", "papers-mini"])
def test_a_composed_file_holds_what_differs_and_what_dvc_needs(root: Path, name: str) -> None:
    params = compose(root / "params" / f"{name}.yaml")
    content = yaml.safe_load(params_text(params))
    assert list(content) == [field.name for field in dataclasses.fields(params_class())]
    for path in NEEDED:
        assert reduce(lambda part, key: part[key], path.split("."), content) is not None
    for system in content["systems"].values():
        assert {"kind", "pitch", "content"} <= set(system)
    for variant in (*content["pitch_variants"].values(), *content["content_variants"].values()):
        assert {"mechanism", "epsilon"} <= set(variant)
    whole, default = to_mapping(params), to_mapping(params_class()())
    for section, knobs in content.items():
        if section in ("systems", "pitch_variants", "content_variants"):
            continue
        fields = {field.name: field for field in dataclasses.fields(getattr(params, section))}
        for knob, value in whole[section].items():
            differs = value != default[section][knob]
            assert (knob in knobs) == (differs or fields[knob].metadata["written"] != "differs"), knob


def test_a_knob_left_out_and_one_at_its_default_are_the_same(root: Path, tmp_path: Path) -> None:
    """They give equal fingerprints of every stage, and equal parameters in MLflow and Kubeflow."""
    params = compose(root / "params/tiny.yaml")
    short, long = tmp_path / "short.yaml", tmp_path / "long.yaml"
    short.write_text(params_text(params))
    long.write_text(yaml.safe_dump(to_mapping(params)))
    assert "learning_rate" not in short.read_text() and "learning_rate" in long.read_text()
    left_out, written = load_params(short), load_params(long)
    assert left_out == written
    for spec in STAGES:
        for key in spec.keys(params) or [""]:
            assert fingerprint(spec, key, left_out, {}) == fingerprint(spec, key, written, {})
    other = dataclasses.replace(
        written, train_speaker=dataclasses.replace(written.train_speaker, learning_rate=0.5)
    )
    spec = stage_spec("train_speaker")
    assert fingerprint(spec, "", other, {}) != fingerprint(spec, "", written, {})
    logged = flat_params(to_mapping(left_out))
    assert logged == flat_params(to_mapping(written))
    assert (
        logged["train_speaker.learning_rate"] == "0.002" and "learning_rate: 0.002" not in short.read_text()
    )


def test_a_knob_is_written_as_soon_as_it_differs(root: Path) -> None:
    text = params_text(
        compose(root / "params/tiny.yaml", {"asi.group": "4", "systems.anon.target": "farthest"})
    )
    content = yaml.safe_load(text)
    assert content["asi"] == {"group": 4} and content["systems"]["anon"]["target"] == "farthest"
    assert "#   target: voice: of a dense cluster" in text
