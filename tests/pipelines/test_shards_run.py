"""The chain shared between pods, run from the compiled file: every stage takes what was gathered."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import goldens
import messages
import pytest
import stand_ins

from voxveil.corpus.split import Split
from voxveil.kubeflow.graph import Pipeline, Task, read_pipeline
from voxveil.kubeflow.local import run_pipeline
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.privacy import read_ledger
from voxveil.privacy.ledger import registered
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Put stand-ins where the stages are; return what the exit task is told."""
    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    for spec in STAGES:
        stand_in: Any = {"anonymize": stand_ins.Anonymize(), "score": stand_ins.Score()}.get(spec.name)
        module = stand_in or messages.Recorder(spec, {"privacy/eer": 12.5})
        monkeypatch.setitem(sys.modules, f"voxveil.stages.{spec.name}", module)
    seen: list[Any] = []

    def close(call: StepCall) -> StepResult:
        seen.append(call.parameters["status"])
        return StepResult({}, {})

    monkeypatch.setitem(sys.modules, "voxveil.kubeflow.steps.close_run", SimpleNamespace(run=close))
    return seen


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return read_pipeline(goldens.compiled(goldens.SHARDS))


def test_the_whole_chain_runs_on_what_was_gathered(
    pipeline: Pipeline, told: list[Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    lines: list[str] = []
    results = run_pipeline(pipeline, run, report=lines.append, execute=messages.here)
    assert len(results) == len(pipeline.tasks) + 1 == len(lines)
    assert told[0]["state"] == "SUCCEEDED"
    folders = {task.title: run / task.name for task in pipeline.tasks}
    for system in ("anon", "anon_dp", "original"):
        made = folders[f"anonymize_gather {system}"]
        for port in ("released", "attacker"):
            split = Split(made / port)
            assert split.utterances == stand_ins.ITEMS
            assert all(split.flac(item.id) == f"{port} {item.id}".encode() for item in stand_ins.ITEMS)
        ledger = read_ledger(made / "released/ledger.json")
        assert [entry.input for entry in ledger.entries] == [item.id for item in stand_ins.ITEMS]
    # Three systems, three shares each, every one announced once.
    assert len(registered(FolderRegister(tmp_path / "ledger"))) == 9
    scores = require_done(folders["score_gather anon_dp"] / "scores", "scores")
    assert sorted(scores.files) == [f"ecapa/{name}/scores.json" for name in "abc"]


def test_a_share_that_fails_leaves_nothing_gathered(
    pipeline: Pipeline, told: list[Any], tmp_path: Path
) -> None:
    def execute(task: Task, message: Mapping[str, Any]) -> None:
        if task.title == "anonymize_share anon 3-of-3":
            raise InputError("its node is gone")
        messages.here(task, message)

    with pytest.raises(InputError, match="its node is gone"):
        run_pipeline(pipeline, tmp_path / "run", report=lambda line: None, execute=execute)
    assert told[0]["state"] == "FAILED"
    names = {folder.name for folder in (tmp_path / "run").iterdir()}
    gathering = {task.name for task in pipeline.tasks if "_gather " in task.title}
    assert names and gathering and not names & gathering
