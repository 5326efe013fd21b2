"""A training stage that torchrun starts on several GPUs; here the processor stands in for them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load

from made_phones import run_trained, write_params, write_phone_corpus
from voxveil.config import load_params
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import ParamsError
from voxveil.stages.registry import stage_spec
from voxveil.stages.torchrun import CPU_PROCESSES, RankError, _failure, training_processes

pytestmark = pytest.mark.torch

TWO = {"train_pitch": {"gpus": 2, "steps": 4}}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a test must find none either."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setenv(CPU_PROCESSES, "allow")


def curve(folder: Path) -> list[dict[str, float]]:
    with (folder / "curve.csv").open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def test_two_processes_leave_what_one_leaves(tmp_path: Path) -> None:
    write_phone_corpus(tmp_path / "corpus")
    two = run_trained("train_pitch", "weak", tmp_path / "corpus", tmp_path / "two", **TWO)
    one = run_trained("train_pitch", "weak", tmp_path / "corpus", tmp_path / "one", train_pitch={"steps": 4})
    assert {path.name for path in two.iterdir()} == {path.name for path in one.iterdir()}
    # The first step starts from the weights of the seed; what follows from it is compared step by step in
    # tests/unit/training/test_ranks.py, for after it the rounding of the two grows.
    assert curve(two)[0] == pytest.approx(curve(one)[0], rel=1e-4, abs=1e-5)
    plan = [[(point["step"], point["learning_rate"]) for point in curve(folder)] for folder in (two, one)]
    assert plan[0] == plan[1] and len(plan[0]) == 4
    metrics, known = (json.loads((folder / "metrics.json").read_text()) for folder in (two, one))
    assert metrics.keys() == known.keys() and np.isfinite(list(metrics.values())).all()
    weights, wanted = (load((folder / "model.safetensors").read_bytes()) for folder in (two, one))
    assert {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in wanted.items()
    }


@pytest.mark.long
def test_processes_that_fail_end_the_stage_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_phone_corpus(tmp_path / "corpus")
    (tmp_path / "corpus/public/extractor/manifest.jsonl").unlink()
    finish(tmp_path / "corpus/public", "prepare", None, "public")
    with pytest.raises(RankError, match=r"no manifest\.jsonl") as error:
        run_trained("train_pitch", "weak", tmp_path / "corpus", tmp_path / "out", **TWO)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2
    assert not (tmp_path / "out/model").exists()
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err + shown.out


def test_more_gpus_than_there_are_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = load_params(write_params(tmp_path / "params.yaml", train_pitch={"gpus": 4}))
    spec = stage_spec("train_pitch")
    assert training_processes(spec, params) == 4
    assert training_processes(stage_spec("train_content"), params) == 1
    assert training_processes(stage_spec("anonymize"), params) == 1
    monkeypatch.delenv(CPU_PROCESSES)
    with pytest.raises(ParamsError, match=r"^train_pitch\.gpus: got 4, this machine has no GPU; set 1, or "):
        training_processes(spec, params)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ParamsError, match=r"^train_pitch\.gpus: got 4, this machine has 2; set 2 or fewer$"):
        training_processes(spec, params)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert training_processes(spec, params) == 4


def test_the_failure_that_is_told_is_the_first_that_says_why(tmp_path: Path) -> None:
    def told(rank: int, known: bool, message: str, time: float, code: int = 1) -> None:
        content = {"rank": rank, "known": known, "message": message, "time": time, "exit_code": code}
        write_json(tmp_path / f"error-{rank}.json", content)

    noise = tmp_path / "torchrun.txt"
    noise.write_text("Traceback\n  exitcode  : -9 (pid: 7)\n")
    assert str(_failure(tmp_path, "train_pitch[dp]", 2)).startswith(
        "train_pitch[dp]: one of 2 processes ended by itself (exit code -9)"
    )
    told(0, False, "RuntimeError: connection closed (fit, line 3)", 2.0)
    told(2, False, "OutOfMemoryError: CUDA out of memory (fit, line 9)", 1.0)
    failure = _failure(tmp_path, "train_pitch[dp]", 3)
    assert str(failure).startswith("train_pitch[dp]: process 2 of 3 failed: OutOfMemoryError: CUDA")
    told(1, True, "utterance u1: no samples", 3.0, code=2)
    failure = _failure(tmp_path, "train_pitch[dp]", 3)
    assert (str(failure), failure.exit_code) == ("utterance u1: no samples", 2)
