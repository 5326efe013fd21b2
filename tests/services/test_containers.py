"""Both images, and the whole chain in them: what DVC gives on this machine, with other values too."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from made_engine import Engine
from voxveil.config import Params
from voxveil.config.compose import compose, params_text
from voxveil.stages.registry import STAGES
from voxveil.tracking.client import connect
from voxveil.tracking.servers.local import MLflow
from voxveil.tracking.store import resolve_store

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

import workspace

from source_tree import copy_source

pytestmark = [pytest.mark.containers, pytest.mark.torch]

#: Systems that draw nothing: their metrics are the same wherever they are computed.
EXACT = ("anon", "original")
_TRAINED = [spec.name for spec in STAGES if spec.trains and spec.name != "train_attacker"]


def tiny(root: Path) -> Params:
    """Scale tiny; one thread, for sums of floats depend on how many add them up."""
    params = compose(root / "params/tiny.yaml")
    return dataclasses.replace(params, base=dataclasses.replace(params.base, threads=1))


def changed(root: Path) -> Params:
    """Another seed and epsilon, stages in shares; hardly trained, for it is equality that is looked at."""
    params = tiny(root)
    pitch = params.pitch_variants
    variants = {**pitch, "dp": dataclasses.replace(pitch["dp"], epsilon=5.0)}
    sections = {name: dataclasses.replace(getattr(params, name), steps=10) for name in _TRAINED}
    return dataclasses.replace(
        params,
        base=dataclasses.replace(params.base, seed=23),
        pitch_variants=variants,
        cluster=dataclasses.replace(params.cluster, anonymize_shards=2, score_shards=2),
        **sections,
    )


@pytest.mark.parametrize(("choose", "epsilon"), [(tiny, 10.0), (changed, 5.0)])
def test_containers_give_what_dvc_gives(
    choose,
    epsilon: float,
    engine: Engine,
    images: dict[str, str],
    team: MLflow,
    root: Path,
    tmp_path: Path,
    monkeypatch,
) -> None:
    name = f"containers-{epsilon:g}"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", name)
    project = copy_source(root, tmp_path / "project")
    params = choose(root)
    (project / "params.yaml").write_text(params_text(params))
    with (tmp_path / "dvc.log").open("wb") as log:
        by_dvc = subprocess.Popen(
            ["dvc", "repro"],
            cwd=project,
            env=workspace.environment(project, VOXVEIL_TRACKING="off"),
            stdout=log,
            stderr=log,
        )
        try:
            printed = workspace.run(
                tmp_path,
                *("voxveil", "pipeline", "run", "--local", "--network", "host", "--root", "run"),
                *("--params", str(project / "params.yaml"), "--project", str(project)),
                *(word for target, image in images.items() for word in (f"--{target}-image", image)),
                PYTHONPATH=str(root / "src"),
                KFP_RUN_ID=name,
                MLFLOW_EXPERIMENT_NAME=name,
                **engine.environment,
                **team.environment,
            ).stdout
        finally:
            status = by_dvc.wait()
    assert status == 0, (tmp_path / "dvc.log").read_text()[-3000:]
    compared = workspace.run(
        tmp_path, sys.executable, str(root / "docker/compare.py"), "run", str(project / "metrics"), *EXACT
    ).stdout
    assert "0 beyond 1e-06 or missing" in compared
    print(f"{printed.count(': done in ')} tasks; {compared}")

    tracker = connect(resolve_store())
    runs = tracker.find(kfp_run=name)
    assert {run.info.status for run in runs} == {"FINISHED"}
    tags = [run.data.tags for run in runs]
    (parent,) = [run for run in runs if run.data.tags.get("voxveil.role") == "run"]
    assert {each["mlflow.parentRunId"] for each in tags if "mlflow.parentRunId" in each} == {
        parent.info.run_id
    }
    trained = {each["voxveil.stage"] for each in tags if "voxveil.stage" in each}
    assert {*_TRAINED, "train_attacker"} <= trained
    systems = {
        run.data.tags["voxveil.system"]: run.data.metrics for run in runs if "privacy/eer" in run.data.metrics
    }
    assert sorted(systems) == sorted(params.systems)
    assert systems["anon_dp"]["privacy/epsilon_pitch"] == epsilon
    for system in EXACT:
        flat = json.loads((project / f"metrics/{system}.metrics.json").read_text())
        assert systems[system]["privacy/eer"] == pytest.approx(flat["privacy/eer"], abs=1e-6)
