"""``voxveil stack``: again and again, after a kill, and without a word to others."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.runtime.atomic import read_json
from voxveil.tracking.servers.local import Stack

pytestmark = pytest.mark.services


def pids(stack: Stack) -> dict[str, int]:
    postmaster = (stack.folder / "postgres/data/postmaster.pid").read_text().split()[0]
    found = {name: (stack.folder / name / f"{name}.pid").read_text().split()[0] for name in ("s3", "mlflow")}
    return {name: int(pid) for name, pid in {**found, "postgres": postmaster}.items()}


def up(stack: Stack, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert main(["stack", "up", "--data", str(stack.folder)]) == 0
    lines = [line.split(": ") for line in capsys.readouterr().out.splitlines()[:3]]
    return dict(lines)


def test_a_second_up_changes_nothing_and_a_killed_part_comes_back(
    mlflow_server, stack: Stack, capsys
) -> None:
    before = pids(stack)
    kept = {
        name: (stack.folder / name).read_bytes() for name in ("passwords.json", "settings.json", "client.env")
    }
    assert up(stack, capsys) == {"postgres": "running", "s3": "running", "mlflow": "running"}
    assert pids(stack) == before
    os.killpg(before["mlflow"], signal.SIGKILL)
    os.kill(before["s3"], signal.SIGKILL)
    assert main(["stack", "status", "--data", str(stack.folder)]) == 1
    assert up(stack, capsys) == {"postgres": "running", "s3": "started", "mlflow": "started"}
    after = pids(stack)
    assert after["postgres"] == before["postgres"]
    assert after["mlflow"] != before["mlflow"]
    assert main(["stack", "status", "--data", str(stack.folder)]) == 0
    for name, content in kept.items():
        assert (stack.folder / name).read_bytes() == content


def test_passwords_are_random_and_private(mlflow_server, stack: Stack) -> None:
    secrets = read_json(stack.folder / "passwords.json")
    assert len(set(secrets.values())) == len(secrets) > 0
    assert all(len(secret) >= 32 for secret in secrets.values())
    for path in stack.folder.rglob("*"):
        if path.is_file() and path.stat().st_size < 1_000_000:
            shared = path.stat().st_mode & 0o077
            # PostgreSQL's and the S3 server's folders let nobody in, whatever a file in them says.
            inside = path.relative_to(stack.folder).parts[0]
            if shared and inside not in ("postgres", "s3"):
                text = path.read_bytes()
                assert not [name for name, secret in secrets.items() if secret.encode() in text], path
    for inside in ("postgres", "s3"):
        assert (stack.folder / inside).stat().st_mode & 0o077 == 0


def test_a_shell_that_reads_the_file_can_work(mlflow_server, stack: Stack, tmp_path: Path) -> None:
    command = f". {stack.client_file} && exec {shlex.quote(sys.executable)} -m voxveil.cli.main stack probe"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    result = subprocess.run(
        ["bash", "-c", command], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout == f"MLflow at {stack.mlflow.address}: answers\n"


def test_a_port_of_another_program_is_named(tmp_path: Path, stack: Stack, s3, postgres, capsys) -> None:
    folder = tmp_path / "other"
    assert main(["stack", "up", "--data", str(folder), "--postgres-port", str(stack.ports.postgres)]) == 1
    said = capsys.readouterr().err
    assert f"postgres: port {stack.ports.postgres} is taken by another program" in said


def test_down_of_nothing_is_one_line(tmp_path: Path, capsys) -> None:
    assert main(["stack", "down", "--data", str(tmp_path / "nothing")]) == 2
    assert "holds no stack" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()
