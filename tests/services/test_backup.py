"""A backup of the database, restored into the empty one of another stack, with the passwords of its time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.tracking.client import connect
from voxveil.tracking.servers.local import Stack
from voxveil.tracking.servers.processes import free_port
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services


@pytest.fixture
def other() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="voxveil-other."))
    folder.chmod(0o755)
    yield folder
    if (folder / "settings.json").is_file():
        Stack(folder).down(seconds=1)
    shutil.rmtree(folder, ignore_errors=True)


def postgres(stack: Stack, program: str, *arguments: str) -> None:
    tools = stack.postgres.tools()
    assert tools is not None
    place = ("-h", "127.0.0.1", "-p", str(stack.ports.postgres), "-U", "mlflow")
    password = stack._secrets["postgres"]
    environment = {**os.environ, "PGPASSWORD": password}
    subprocess.run([str(tools / program), *place, *arguments], env=environment, check=True)


def test_a_backup_goes_into_the_empty_database_of_another_stack(
    team, stack: Stack, finished: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    command = [sys.executable, "-m", "voxveil.cli.main", "track", "sync", "--root", str(finished)]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    # Of what was sent: where, and the page; not MLflow's two lines for each run.
    first, address = said.stdout.splitlines()
    assert said.stderr == ""
    assert first.startswith(f"published to {team.address}, experiment ")
    assert (
        address == f"{team.address}/#/experiments/{connect(resolve_store()).experiment_id}/runs/{first[-32:]}"
    )
    dump = tmp_path / "mlflow.dump"
    postgres(stack, "pg_dump", "-Fc", "-f", str(dump), "mlflow")

    shutil.copy(stack.folder / "passwords.json", other)
    ports = {name: free_port() for name in ("postgres", "s3", "mlflow")}
    given = [word for name, port in ports.items() for word in (f"--{name}-port", str(port))]
    capsys.readouterr()
    assert main(["stack", "up", "--only", "postgres", "--data", str(other), *given]) == 0
    assert capsys.readouterr().out.splitlines() == ["postgres: started"]
    restored = Stack(other)
    postgres(restored, "pg_restore", "--exit-on-error", "-d", "mlflow", str(dump))
    assert main(["stack", "up", "--data", str(other)]) == 0
    monkeypatch.setenv("MLFLOW_TRACKING_URI", restored.mlflow.address)
    tracker = connect(resolve_store())
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert first[-32:] in [run.info.run_id for run in runs]
    # Without the passwords of its time nobody gets in, and that is said at once.
    restored.mlflow.stop(1)
    kept = (other / "passwords.json").read_text()
    (other / "passwords.json").write_text(kept.replace(restored._secrets["admin"], "c0rrect-horse-battery"))
    assert main(["stack", "up", "--data", str(other)]) == 1
    assert "does not take the password of admin" in capsys.readouterr().err
