"""Who may speak to the server, under which name, with how much; and which database it starts on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.tracking.client import connect
from voxveil.tracking.servers.database import prepare_database
from voxveil.tracking.servers.processes import free_port
from voxveil.tracking.servers.server import probe
from voxveil.tracking.servers.settings import ServerSettings, StackError
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services


def status(server, path: str, body: dict, *, user: str = "", **headers: str) -> int:
    import base64

    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    request = urllib.request.Request(
        f"{server.address}{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


SEARCH = "/api/2.0/mlflow/experiments/search"
CREATE_USER = "/api/2.0/mlflow/users/create"


def test_nothing_without_a_password(mlflow_server) -> None:
    somebody = {"username": "mallory", "password": "long-enough-for-anyone"}
    admin = f"admin:{mlflow_server.settings.admin_password}"
    assert status(mlflow_server, SEARCH, {"max_results": 1}) == 401
    assert status(mlflow_server, SEARCH, {"max_results": 1}, user="admin:password1234") == 401
    assert status(mlflow_server, CREATE_USER, somebody) == 401
    assert status(mlflow_server, SEARCH, {"max_results": 1}, user=admin) == 200
    ann = {"username": "ann", "password": "a-password-of-ann-17"}
    assert status(mlflow_server, CREATE_USER, ann, user=admin) == 200
    assert status(mlflow_server, SEARCH, {"max_results": 1}, user="ann:a-password-of-ann-17") == 200
    user = "ann:a-password-of-ann-17"
    assert status(mlflow_server, CREATE_USER, somebody, user=user) == 403
    # A team writes into one experiment, whoever made it; only its maker deletes it.
    assert status(mlflow_server, "/api/2.0/mlflow/runs/create", {"experiment_id": "0"}, user=user) == 200
    assert (
        status(mlflow_server, "/api/2.0/mlflow/experiments/delete", {"experiment_id": "0"}, user=user) == 403
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:5000", 200),
        ("localhost:80", 200),
        ("{name}:{port}", 200),
        ("evil.example", 403),
        ("mlflow.evil.example:5000", 403),
    ],
)
def test_a_host_that_is_not_ours_is_refused(mlflow_server, host: str, expected: int) -> None:
    name = mlflow_server.settings.hosts[-1].partition(":")[0]
    host = host.format(name=name, port=mlflow_server.settings.port)
    admin = f"admin:{mlflow_server.settings.admin_password}"
    assert status(mlflow_server, SEARCH, {"max_results": 1}, user=admin, Host=host) == expected


def test_the_probe_makes_a_call_that_health_does_not(mlflow_server, team, monkeypatch, capsys) -> None:
    with urllib.request.urlopen(f"{mlflow_server.address}/health", timeout=30) as response:
        assert response.status == 200
    assert main(["stack", "probe"]) == 0
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "wrong-for-certain")
    assert main(["stack", "probe"]) == 1
    assert "refuses user admin (status 401)" in capsys.readouterr().err
    with pytest.raises(StackError, match="cannot be reached"):
        probe(f"http://127.0.0.1:{free_port()}", "admin", "x")


def test_fifty_megabytes_pass_through_the_proxy(team, s3, tmp_path: Path) -> None:
    tracker = connect(resolve_store())
    big = tmp_path / "big.bin"
    big.write_bytes(os.urandom(1 << 20) * 50)
    run = tracker.client.create_run(tracker.experiment_id)
    tracker.client.log_artifact(run.info.run_id, str(big))
    got = Path(tracker.client.download_artifacts(run.info.run_id, "big.bin", str(tmp_path / "back")))
    assert hashlib.sha256(got.read_bytes()).digest() == hashlib.sha256(big.read_bytes()).digest()
    listing = s3.client().list_objects_v2(Bucket="mlflow", Prefix="artifacts/")
    assert any(item["Key"].endswith("/big.bin") for item in listing["Contents"])


def test_commands_hold_no_password(mlflow_server, stack) -> None:
    commands = subprocess.check_output(["ps", "-eo", "args"], text=True)
    assert "mlflow server" in commands
    for secret in (mlflow_server.settings.admin_password, *stack.s3.environment.values()):
        if len(secret) > 40:
            assert secret not in commands
    assert stack.postgres.url.partition("mlflow:")[2].partition("@")[0] not in commands


@pytest.fixture
def fresh(mlflow_server, postgres) -> ServerSettings:
    """Settings of a server with an empty database of its own."""
    from sqlalchemy import create_engine, text

    engine = create_engine(postgres.url, isolation_level="AUTOCOMMIT")
    name = f"fresh{free_port()}"
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    kept = mlflow_server.settings
    return ServerSettings(
        f"{postgres.url.rpartition('/')[0]}/{name}",
        kept.artifacts,
        kept.admin,
        kept.admin_password,
        kept.secret_key,
        kept.hosts,
    )


def test_two_replicas_set_an_empty_database_up_once(fresh: ServerSettings) -> None:
    states: list[str] = []
    replicas = [threading.Thread(target=lambda: states.append(prepare_database(fresh))) for _ in range(2)]
    for replica in replicas:
        replica.start()
    for replica in replicas:
        replica.join()
    assert sorted(states) == ["current", "made"]
    _step_back(fresh.database, "alembic_version", "f5a4f2784254")
    with pytest.raises(StackError, match=r"Make a backup.*voxveil stack migrate --upgrade"):
        prepare_database(fresh)
    _step_back(fresh.database, "alembic_version", "ffffffffffff")
    for upgrade in (False, True):
        with pytest.raises(StackError):
            prepare_database(fresh, upgrade=upgrade)
    with pytest.raises(StackError, match="newer"):
        prepare_database(fresh, upgrade=True)


def test_an_older_database_is_upgraded_when_asked(fresh: ServerSettings) -> None:
    from alembic import command
    from mlflow.store.db import utils
    from sqlalchemy import create_engine

    assert prepare_database(fresh) == "made"
    head = utils._get_latest_schema_revision()
    engine = create_engine(fresh.database)
    with engine.begin() as connection:
        config = utils._get_alembic_config(fresh.database)
        config.attributes["connection"] = connection
        try:
            command.downgrade(config, "-1")
        except NotImplementedError:
            pytest.skip("MLflow's last migration has no way back")
    before = utils._get_schema_version(engine)
    if before == head:
        pytest.skip("MLflow's last migration has an empty way back")
    with pytest.raises(StackError, match="Make a backup"):
        prepare_database(fresh)
    assert utils._get_schema_version(engine) == before
    assert prepare_database(fresh, upgrade=True) == "upgraded"
    assert utils._get_schema_version(engine) == head
    engine.dispose()


def test_the_server_command_refuses_to_start(fresh: ServerSettings) -> None:
    """Without a secret the process ends at once with one line; it does not loop."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "VOXVEIL_DB_HOST": "127.0.0.1",
        "VOXVEIL_DB_PASSWORD": "x",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "VOXVEIL_ARTIFACTS": "s3://mlflow/artifacts",
        "MLFLOW_SERVER_ALLOWED_HOSTS": "mlflow:5000",
        "MLFLOW_AUTH_ADMIN_PASSWORD": "password1234",
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "k" * 40,
    }
    result = subprocess.run(
        [sys.executable, "-m", "voxveil.cli.main", "stack", "serve"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "voxveil: error: MLFLOW_AUTH_ADMIN_PASSWORD: is a password that manuals show; choose a random one"
    ]


def _step_back(url: str, table: str, revision: str) -> None:
    from sqlalchemy import create_engine, text

    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET version_num = '{revision}'"))
    engine.dispose()
