"""An input of another stage, system, variant or port would give numbers under a false name: refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.config import load_params
from voxveil.config.load import read_mapping
from voxveil.runtime.atomic import read_json, write_bytes, write_json
from voxveil.runtime.done import DONE, Done
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import STAGES, Port, StageSpec
from voxveil.stages.run import _check_origin, made_for, run_stage

PORTS = [(spec, port) for spec in STAGES for port in spec.inputs]


@pytest.mark.parametrize(("spec", "port"), PORTS, ids=lambda each: each.name)
def test_every_input_says_whose_output_it_must_be(spec: StageSpec, port: Port) -> None:
    maker = next(each for each in STAGES if each.name == port.made_by)
    folders = [out.name for out in maker.outputs if not out.copy_of]
    assert port.output in folders if len(folders) > 1 else not port.output
    assert bool(maker.keyed) == bool(port.made_for)


@pytest.mark.parametrize(("spec", "port"), PORTS, ids=lambda each: each.name)
def test_another_stage_key_or_port_is_refused(spec: StageSpec, port: Port, root: Path) -> None:
    params = load_params(root / "params.yaml")
    key = made_for(port, params, "anon_dp")
    right = Done(port.made_by, key, "", {}, port.output)
    _check_origin(port, right, Path("x"), key)
    wrong = [Done("report", key, "", {}, port.output)]
    if key:
        wrong.append(Done(port.made_by, "other", "", {}, port.output))
    if port.output:
        wrong.append(Done(port.made_by, key, "", {}, "other"))
    for done in wrong:
        with pytest.raises(InputError, match=f"^input {port.name}: x is output") as error:
            _check_origin(port, done, Path("x"), key)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("port", ["scores", "transcripts", "released"])
def test_evaluate_takes_nothing_of_another_system(tmp_path: Path, port: str) -> None:
    make_outputs(tmp_path, SYSTEMS)
    out = tmp_path / "outputs"
    places = {"scores": "score/{}", "transcripts": "transcribe/{}", "released": "anonymize/{}/released"}
    target, other = (out / places[port].format(name) for name in ("anon_dp", "anon"))
    shutil.rmtree(target)
    shutil.copytree(other, target)
    with pytest.raises(InputError, match=f"^input {port}: "):
        evaluate(tmp_path, "anon_dp")
    assert not (out / "evaluate/anon_dp").exists()


def test_a_misspelt_digest_is_no_check_left_out(tmp_path: Path, root: Path) -> None:
    with pytest.raises(InputError, match="unknown --digest pubblic"):
        run_stage(
            "train_vocoder",
            root / "params.yaml",
            {"public": tmp_path},
            {name: tmp_path / name for name in ("model", "metrics", "curve")},
            digests={"pubblic": "0" * 64},
        )


@pytest.mark.parametrize("same", ["metrics", "curve"])
def test_two_outputs_of_one_path_are_refused_before_any_work(tmp_path: Path, root: Path, same: str) -> None:
    outputs = {"model": tmp_path / "m", "metrics": tmp_path / "x", "curve": tmp_path / "y"}
    outputs[same] = tmp_path / "m"
    with pytest.raises(InputError, match=f"{same} and model have the same path"):
        run_stage("train_vocoder", root / "params.yaml", {"public": tmp_path}, outputs)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("base:\n  seed: 17\n  seed: 18\n")
    with pytest.raises(ParamsError, match=r"seed: stands twice \(line 3\)"):
        read_mapping(path)


def test_what_is_no_plain_file_is_not_replaced(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(InputError, match="cannot be written"):
            write_bytes(tmp_path / name, b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]
    assert not (tmp_path / "pipe").is_file()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5001 + "}", "{", "\ufeff{}"])
def test_any_broken_json_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=r"x\.json: not valid JSON") as error:
        read_json(tmp_path / "x.json")
    assert len(str(error.value)) < 400


def test_completion_records_name_their_port(tmp_path: Path) -> None:
    make_outputs(tmp_path, {"anon": SYSTEMS["anon"]})
    evaluate(tmp_path, "anon")
    record = read_json(tmp_path / "outputs/evaluate/anon" / DONE)
    assert (record["stage"], record["key"], record["output"]) == ("evaluate", "anon", "metrics")
    write_json(tmp_path / "again.json", record)
