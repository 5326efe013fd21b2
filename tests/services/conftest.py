"""Real servers on loopback, started and stopped by the tests."""

from __future__ import annotations

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

KEY, SECRET = "tests-key", "tests-secret"


def absent(what: str) -> None:
    """Skip where a program is not installed; in CI that is a fault."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed (tests/services/prepare.sh)")
    pytest.skip(f"{what} is not installed (tests/services/prepare.sh)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait(ready: Callable[[], bool], process: subprocess.Popen, log: Path, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if ready():
                return
        except Exception:
            pass
        time.sleep(0.3)
    process.kill()
    pytest.fail(f"server did not start:\n{log.read_text()[-3000:]}")


@dataclass(frozen=True)
class S3:
    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def client(self):
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    weed = Path(sys.executable).with_name("weed")
    if not weed.is_file():
        absent("seaweedfs")
    folder = tmp_path_factory.mktemp("s3")
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "ids.json").write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, port = (free_port() for _ in range(4))
    log = folder / "log"
    command = [
        str(weed), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-master.port.grpc={free_port()}",
        f"-volume.port={volume}", f"-volume.port.grpc={free_port()}",
        "-filer", f"-filer.port={filer}", f"-filer.port.grpc={free_port()}",
        "-s3", f"-s3.port={port}", f"-s3.port.grpc={free_port()}", f"-s3.config={folder / 'ids.json'}",
        "-master.volumeSizeLimitMB=64", "-volume.max=500", "-master.telemetry=false",
    ]  # fmt: skip
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    server = S3(f"http://127.0.0.1:{port}")
    wait(lambda: bool(server.client().create_bucket(Bucket="probe")), process, log)
    yield server
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        absent("postgresql")
    tools = Path(found[-1])
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/voxveil-pg.XXXXXX"], text=True).strip())
    (folder / "password").write_text("tests-password")
    port = free_port()
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
        shutil.chown(folder / "password", "postgres")
    as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run([*as_owner, *command], check=True, capture_output=True, cwd=folder)

    run(
        str(tools / "initdb"), "-D", str(data), "-A", "scram-sha-256", "-U", "mlflow",
        f"--pwfile={folder / 'password'}",
    )  # fmt: skip
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run(str(tools / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
    yield f"postgresql+psycopg2://mlflow:tests-password@127.0.0.1:{port}/postgres"
    run(str(tools / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mlflow_server(postgres: str, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An MLflow server over PostgreSQL and S3, artifacts by proxy: the team's set-up."""
    s3.client().create_bucket(Bucket="mlflow")
    port, log = free_port(), tmp_path_factory.mktemp("mlflow") / "log"
    command = [
        sys.executable, "-m", "mlflow", "server", "--backend-store-uri", postgres,
        "--artifacts-destination", "s3://mlflow/artifacts", "--serve-artifacts",
        "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
    ]  # fmt: skip
    environment = {**os.environ, **s3.environment, "MLFLOW_S3_ENDPOINT_URL": s3.endpoint}
    environment.update(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
    address = f"http://127.0.0.1:{port}"
    wait(lambda: urllib.request.urlopen(f"{address}/health", timeout=2).status == 200, process, log)
    yield address
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def chromium() -> str:
    path = shutil.which("chromium")
    if path is None:
        absent("chromium")
    return str(path)
