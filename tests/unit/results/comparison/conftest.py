"""Two finished runs: the second leaks less, on the same trials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from made_outputs import Made, evaluate, make_outputs
from voxveil.stages.run import run_stage

ORIGINAL = Made(4.0, per=20.0, kind="original")
FIRST = {
    "original": ORIGINAL,
    "anon": Made(1.5, per=28.0),
    "anon_dp": Made(0.9, pitch=10.0, content=10.0, per=62.0),
}
SECOND = {
    "original": ORIGINAL,
    "anon": Made(1.5, per=28.2),
    "anon_dp": Made(0.0, pitch=1.0, content=1.0, per=80.0),
}


def finished(root: Path, systems: dict[str, Made], **options) -> Path:
    make_outputs(root, systems, **options)
    for name in systems:
        evaluate(root, name)
    out = root / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", root / "params.yaml", inputs, {"report": out / "report"})
    return root


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("first"), FIRST)


@pytest.fixture(scope="session")
def second_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("second"), SECOND)


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests, and a project folder of the test's own."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_TRACKING", "MLFLOW_EXPERIMENT", "MLFLOW_RUN", "DVC_", "KFP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
