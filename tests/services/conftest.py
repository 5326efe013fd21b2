"""Real servers on loopback: those of ``voxveil stack``, one set for the session, started when asked for."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_engine import Absent, Engine
from made_outputs import SYSTEMS, Made, finish_outputs
from voxveil.tracking.servers.local import MLflow, Stack
from voxveil.tracking.servers.postgres import Postgres
from voxveil.tracking.servers.processes import free_port
from voxveil.tracking.servers.seaweedfs import SeaweedFS


def absent(what: str) -> None:
    """Skip where a program is not installed; in CI that is a fault."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed (tests/services/prepare.sh)")
    pytest.skip(f"{what} is not installed (tests/services/prepare.sh)")


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The stack's data folder and ports; nothing runs yet."""
    # Not below pytest's folder, which the user that PostgreSQL runs as may not enter.
    folder = Path(tempfile.mkdtemp(prefix="voxveil-stack."))
    folder.chmod(0o755)
    made = Stack(folder, {name: free_port() for name in ("postgres", "s3", "mlflow")})
    yield made
    made.down(seconds=1)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def s3(stack: Stack) -> SeaweedFS:
    if SeaweedFS.program() is None:
        absent("seaweedfs")
    stack.s3.start()
    return stack.s3


@pytest.fixture(scope="session")
def postgres(stack: Stack) -> Postgres:
    if Postgres.tools() is None:
        absent("postgresql")
    stack.postgres.start()
    return stack.postgres


@pytest.fixture(scope="session")
def mlflow_server(stack: Stack, s3: SeaweedFS, postgres: Postgres) -> MLflow:
    """An MLflow server over PostgreSQL and S3, artifacts by proxy, with users: the team's set-up."""
    stack.up()
    return stack.mlflow


@pytest.fixture
def team(mlflow_server: MLflow, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> MLflow:
    """Runs of the test go to the server, into an experiment of the test's own."""
    for name in ("MLFLOW_RUN_ID", "DVC_EXP_NAME", "KFP_RUN_ID", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in mlflow_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", request.node.name)
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    return mlflow_server


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a finished run of three systems that nobody has sent yet."""
    return finish_outputs(tmp_path_factory.mktemp("finished"), SYSTEMS)


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three small runs: the more epsilon, the more leaks."""
    runs = {}
    for name, epsilon, leak in (("eps-1", 1.0, 0.0), ("eps-10", 10.0, 0.6), ("eps-100", 100.0, 1.5)):
        private = Made(leak, pitch=epsilon, content=epsilon, per=90 - 20 * leak)
        made = {"original": Made(4.0, per=20.0, kind="original"), "anon_dp": private}
        runs[name] = finish_outputs(tmp_path_factory.mktemp(name), made)
    return runs


@pytest.fixture(scope="session")
def chromium() -> str:
    path = shutil.which("chromium")
    if path is None:
        absent("chromium")
    return str(path)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """A Docker engine: the one that answers, or one for these tests alone."""
    try:
        made = Engine()
    except Absent as error:
        absent(str(error))
    yield made
    made.close()


@pytest.fixture(scope="module")
def images(engine: Engine, root: Path) -> dict[str, str]:
    """The tag of the image of each target, built from this checkout."""
    tags = {target: f"voxveil-{target}:tests" for target in ("cpu", "gpu")}
    # The embedded corpus is spoken by espeak-ng, which the image holds on demand only.
    engine.build(root, "cpu", tags["cpu"], "--build-arg", "DEMO=yes")
    engine.build(root, "gpu", tags["gpu"])
    return tags
