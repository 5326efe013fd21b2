"""The MLflow server does not start with a missing, known or short secret."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from voxveil.tracking.servers.processes import Daemon
from voxveil.tracking.servers.server import server_command, server_environment, write_private
from voxveil.tracking.servers.settings import ServerSettings, StackError

RIGHT = {
    "VOXVEIL_DB_HOST": "db.example.org",
    "VOXVEIL_DB_PASSWORD": "p@ss/w%rd:1",
    "VOXVEIL_ARTIFACTS": "s3://mlflow/artifacts",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "store-secret-1",
    "MLFLOW_AUTH_ADMIN_PASSWORD": "correct horse battery",
    "MLFLOW_FLASK_SERVER_SECRET_KEY": "0123456789abcdef" * 2,
    "MLFLOW_SERVER_ALLOWED_HOSTS": "mlflow.example.org,mlflow:5000",
}


def test_a_complete_environment_is_enough() -> None:
    settings = ServerSettings.from_environment(RIGHT)
    assert settings.allowed_hosts == "mlflow.example.org,mlflow:5000,localhost:*,127.0.0.1:*"
    assert settings.database == "postgresql+psycopg2://mlflow:p%40ss%2Fw%25rd%3A1@db.example.org:5432/mlflow"
    assert (settings.admin, settings.port, settings.workers) == ("admin", 5000, 2)


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_nothing_has_a_default_that_must_be_chosen(name: str) -> None:
    with pytest.raises(StackError, match=f"{name} is not set"):
        ServerSettings.from_environment({key: value for key, value in RIGHT.items() if key != name})


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "PASSWORD-1234",
        "changeme123456",
        "admin-admin-admin",
        "short",
        "mlflow-secret-1",
        "123456789012",
    ],
)
def test_a_password_of_a_manual_is_refused(password: str) -> None:
    with pytest.raises(StackError, match="MLFLOW_AUTH_ADMIN_PASSWORD") as error:
        ServerSettings.from_environment({**RIGHT, "MLFLOW_AUTH_ADMIN_PASSWORD": password})
    assert password not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MLFLOW_FLASK_SERVER_SECRET_KEY", "short"),
        ("MLFLOW_SERVER_ALLOWED_HOSTS", "*"),
        ("MLFLOW_SERVER_ALLOWED_HOSTS", "mlflow:5000,*:*"),
        ("VOXVEIL_ARTIFACTS", "/data"),
        ("VOXVEIL_DB_PORT", "many"),
        ("VOXVEIL_WORKERS", "0"),
        ("MLFLOW_AUTH_ADMIN_PASSWORD_FILE", "/no/such/file"),
    ],
)
def test_an_unsafe_setting_is_refused(name: str, value: str) -> None:
    with pytest.raises(StackError, match=name):
        ServerSettings.from_environment({**RIGHT, name: value})


def test_secrets_may_come_in_files(tmp_path: Path) -> None:
    (tmp_path / "admin").write_text("correct horse battery\n")
    environment = {**RIGHT, "MLFLOW_AUTH_ADMIN_PASSWORD_FILE": str(tmp_path / "admin")}
    del environment["MLFLOW_AUTH_ADMIN_PASSWORD"]
    assert ServerSettings.from_environment(environment).admin_password == "correct horse battery"


def test_no_secret_in_the_command_nor_in_what_is_printed() -> None:
    settings = ServerSettings.from_environment(RIGHT)
    shown = " ".join(server_command(settings)) + repr(settings)
    for name in ("VOXVEIL_DB_PASSWORD", "MLFLOW_AUTH_ADMIN_PASSWORD", "MLFLOW_FLASK_SERVER_SECRET_KEY"):
        assert RIGHT[name] not in shown
    assert "p%40ss" not in shown


def test_mlflow_reads_the_file_of_users(tmp_path: Path) -> None:
    """A percent sign must survive configparser, and the schema of users must be its own."""
    settings = ServerSettings.from_environment(RIGHT)
    path = write_private(tmp_path / "auth.ini", settings.auth_ini())
    assert path.stat().st_mode & 0o777 == 0o600
    config = configparser.ConfigParser()
    config.read(path)
    assert config["mlflow"]["database_uri"] == settings.auth_database
    assert settings.auth_database.endswith("?options=-csearch_path%3Dauth")
    assert "admin_password" not in config["mlflow"]


def test_the_server_gets_our_settings_and_not_the_users(tmp_path: Path) -> None:
    settings = ServerSettings.from_environment(RIGHT)
    around = {"PATH": "/bin", "MLFLOW_TRACKING_URI": "http://elsewhere", "AWS_ENDPOINT_URL": "http://s3:9000"}
    environment = server_environment(settings, tmp_path / "auth.ini", around)
    assert "MLFLOW_TRACKING_URI" not in environment
    assert environment["MLFLOW_S3_ENDPOINT_URL"] == "http://s3:9000"
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert environment["PATH"] == "/bin"


def test_a_daemon_is_found_again_and_stopped_with_its_children(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, "sleeper")
    code = (
        "import subprocess, time; subprocess.Popen(['sleep', '300'])\n"
        "print('up', flush=True); time.sleep(300)"
    )
    daemon.start([sys.executable, "-c", code], os.environ, tmp_path)
    until = time.monotonic() + 60
    while "up" not in daemon.log.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    pid = daemon.pid()
    assert Daemon(tmp_path, "sleeper").pid() == pid
    group = subprocess.run(
        ["ps", "-o", "pid=", "-g", str(pid)], capture_output=True, text=True
    ).stdout.split()
    assert len(group) == 2
    assert daemon.stop(5)
    left = subprocess.run(
        ["ps", "-o", "stat=", "-g", str(pid)], capture_output=True, text=True
    ).stdout.split()
    assert [state for state in left if not state.startswith("Z")] == []
    assert daemon.pid() is None
    assert not daemon.stop(1)


def test_a_pid_that_another_process_has_now_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "gone.pid").write_text(f"{os.getpid()} 1\n")
    daemon = Daemon(tmp_path, "gone")
    assert daemon.pid() is None
    assert not daemon.stop(1)
