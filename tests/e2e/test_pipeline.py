"""The compiled pipeline at scale tiny: every command of the file runs once, as its launcher would run it."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import workspace

from voxveil.config.compose import compose, params_text
from voxveil.runtime.done import require_done
from voxveil.stages.registry import STAGES

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.torch]


def test_every_command_of_the_compiled_pipeline(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    tiny = compose(root / "params/tiny.yaml")
    # Two systems show every command of every stage; the chain of tests/e2e/test_chain.py has all three.
    chosen = {name: tiny.systems[name] for name in ("original", "anon_dp")}
    short = {
        name: dataclasses.replace(getattr(tiny, name), steps=workspace.STEPS)
        for name in workspace.ANONYMIZING
    }
    params = dataclasses.replace(tiny, systems=chosen, **short)
    (tmp_path / "params.yaml").write_text(params_text(params))
    result = workspace.run(
        tmp_path,
        *("voxveil", "pipeline", "run", "--local", "--no-docker"),
        *("--params", "params.yaml", "--root", "run", "--project", str(root)),
        PYTHONPATH=str(root / "src"),
        VOXVEIL_TRACKING="off",
    )
    done = [line.partition(":")[0] for line in result.stdout.splitlines() if ": done in " in line]
    systems, variants = sorted(params.systems), ["dp", "plain"]
    keys = {"": [""], "system": systems, "pitch_variant": variants, "content_variant": variants}
    titles = [f"{spec.name} {key}".strip() for spec in STAGES for key in keys[spec.keyed]]
    assert sorted(done) == sorted([*titles, "close_run"])

    run = tmp_path / "run"
    report = require_done(run / "report/report_files", "report")
    assert "index.html" in report.files
    assert (run / "report/report").read_bytes() == (run / "report/report_files/index.html").read_bytes()

    flat = {}
    for folder in sorted(run.glob("evaluate*")):
        output = json.loads((folder / "executor_output.json").read_text())
        metadata = output["artifacts"]["flat"]["artifacts"][0]["metadata"]
        flat[metadata["key"]] = metadata
        system, uri, digest = output["parameterValues"]["metrics_location"].split(" ")
        assert system == metadata["key"]
        assert require_done(Path(uri), "metrics").digest == digest
    assert sorted(flat) == systems
    # What Kubeflow's page shows are the metrics themselves.
    assert flat["original"]["privacy/eer"] <= 15.0
    assert flat["anon_dp"]["privacy/eer"] > flat["original"]["privacy/eer"]
    assert not list(run.rglob("*.partial"))
