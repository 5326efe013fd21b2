"""PostgreSQL, S3 and MLflow on one machine without Docker: ``voxveil stack up``."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from voxveil.runtime.atomic import file_lock, read_json, write_json
from voxveil.tracking.servers.database import prepare_database
from voxveil.tracking.servers.postgres import Postgres
from voxveil.tracking.servers.processes import Daemon, free_port, wait_until
from voxveil.tracking.servers.seaweedfs import INNER, SeaweedFS
from voxveil.tracking.servers.server import (
    PasswordError,
    probe,
    server_command,
    server_environment,
    write_private,
)
from voxveil.tracking.servers.settings import ServerSettings, StackError

__all__ = ["MLflow", "Ports", "Stack"]

_BUCKETS = ("mlflow", "voxveil")
_SECRETS = ("postgres", "s3_key", "s3_secret", "admin", "flask")


@dataclass(frozen=True)
class Ports:
    """Ports of the servers, kept from one start to the next."""

    postgres: int = 15432
    s3: int = 9000
    mlflow: int = 5000
    bind: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    inner: tuple[int, ...] = field(default=())


class MLflow:
    """The MLflow server of a stack."""

    name = "mlflow"

    def __init__(self, folder: Path, settings: ServerSettings, store: Mapping[str, str]) -> None:
        self.folder = folder
        self.settings = settings
        self._store = store
        self._daemon = Daemon(folder, "mlflow")
        self.log = self._daemon.log

    @property
    def address(self) -> str:
        """Its address on this machine."""
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a client."""
        return {
            "MLFLOW_TRACKING_URI": self.address,
            "MLFLOW_TRACKING_USERNAME": self.settings.admin,
            "MLFLOW_TRACKING_PASSWORD": self.settings.admin_password,
        }

    def running(self) -> bool:
        """Return whether the process runs."""
        return self._daemon.pid() is not None

    def start(self) -> None:
        """Prepare the database, start the server, wait for a real call to succeed.

        Raises:
            StackError: It does not start.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.running():
            prepare_database(self.settings)
            ini = write_private(self.folder / "auth.ini", self.settings.auth_ini())
            kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
            environment = server_environment(self.settings, ini, {**kept, **self._store})
            self._daemon.start(server_command(self.settings), environment, self.folder)
        wait_until(self._ready, self.running, self.log, "MLflow", 240)

    def stop(self, seconds: float = 15.0) -> bool:
        """Stop it; return whether it was running."""
        return self._daemon.stop(seconds)

    def _ready(self) -> bool:
        try:
            probe(self.address, self.settings.admin, self.settings.admin_password)
        except PasswordError:
            kept = self.folder.parent / "passwords.json"
            raise StackError(
                f"MLflow at {self.address}: runs, but does not take the password of {self.settings.admin}"
                f" in {kept}: it was changed in MLflow, or the database is the backup of another stack;"
                " write the right one there, then 'stack up' again"
            ) from None
        except StackError:
            return False
        return True


class Stack:
    """All three, in one data folder.

    Args:
        folder: Data, logs, passwords; made where it is not there.
        wanted: Ports that differ from the ones kept there; the defaults unless given.
    """

    def __init__(self, folder: Path, wanted: Mapping[str, object] | None = None) -> None:
        self.folder = folder.absolute()
        self._wanted = {name: value for name, value in (wanted or {}).items() if value}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ports = self._ports()
        self._secrets = self._read_secrets()
        self.postgres = Postgres(self.folder / "postgres", self.ports.postgres, self._secrets["postgres"])
        self.s3 = SeaweedFS(
            self.folder / "s3",
            self.ports.s3,
            list(self.ports.inner),
            self._secrets["s3_key"],
            self._secrets["s3_secret"],
            self.ports.bind,
        )
        settings = ServerSettings(
            database=self.postgres.url,
            artifacts="s3://mlflow/artifacts",
            admin="admin",
            admin_password=self._secrets["admin"],
            secret_key=self._secrets["flask"],
            hosts=(*self.ports.hosts, f"{socket.gethostname()}:{self.ports.mlflow}"),
            bind=self.ports.bind,
            port=self.ports.mlflow,
            workers=1,
        )
        self.mlflow = MLflow(self.folder / "mlflow", settings, self.s3.environment)

    def up(self, only: Collection[str] = ()) -> dict[str, str]:
        """Start the stopped parts; return ``started`` or ``running`` by part.

        Args:
            only: Names of parts, all unless given. PostgreSQL alone makes an empty database, for a backup to
                be restored into.

        Raises:
            StackError: A part is not installed, does not start, or its port is taken by another program.
        """
        states = {}
        with file_lock(self.folder / "lock"):
            for part in (self.postgres, self.s3, self.mlflow):
                if only and part.name not in only:
                    continue
                states[part.name] = "running" if part.running() else "started"
                if states[part.name] == "started":
                    _require_free(part.name, getattr(self.ports, part.name))
                part.start()
                if part is self.s3:
                    for bucket in _BUCKETS:
                        self.s3.make_bucket(bucket)
            self._write_client()
        return states

    def down(self, seconds: float = 15.0) -> dict[str, str]:
        """Stop the running parts in reverse order; return ``stopped`` or ``not running`` by part.

        Args:
            seconds: How long a server may take before it is killed.
        """
        with file_lock(self.folder / "lock"):
            states = [part.stop(seconds) for part in (self.mlflow, self.s3)] + [self.postgres.stop()]
        names = (self.mlflow.name, self.s3.name, self.postgres.name)
        return {
            name: "stopped" if state else "not running" for name, state in zip(names, states, strict=True)
        }

    def status(self) -> dict[str, str]:
        """Return ``running`` or ``not running`` by part."""
        parts = (self.postgres, self.s3, self.mlflow)
        return {part.name: "running" if part.running() else "not running" for part in parts}

    @property
    def client_file(self) -> Path:
        """File to ``source`` in a shell that uses the stack."""
        return self.folder / "client.env"

    def _write_client(self) -> None:
        values = {**self.mlflow.environment, **self.s3.environment}
        text = "".join(f"export {name}={value}\n" for name, value in sorted(values.items()))
        write_private(self.client_file, text)

    def _ports(self) -> Ports:
        path = self.folder / "settings.json"
        kept = read_json(path) if path.is_file() else {}
        content = {**kept, **self._wanted}
        if not content.get("inner"):
            content["inner"] = [free_port() for _ in INNER]
        ports = Ports(
            **{**content, "hosts": tuple(content.get("hosts", ())), "inner": tuple(content["inner"])}
        )
        write_json(path, asdict(ports))
        return ports

    def _read_secrets(self) -> dict[str, str]:
        """Return the passwords; made at random the first time, and readable for their owner alone."""
        path = self.folder / "passwords.json"
        if not path.is_file():
            passwords = {name: secrets.token_hex(24) for name in _SECRETS}
            write_private(path.with_suffix(".new"), json.dumps(passwords, indent=2) + "\n").replace(path)
        if path.stat().st_mode & 0o077:
            raise StackError(f"{path}: others can read it; chmod 600 it, and change the passwords in it")
        content = read_json(path)
        return {name: str(content[name]) for name in _SECRETS}


def _require_free(name: str, port: int, patience: float = 5.0) -> None:
    """Raise an error if a port stays in use; a killed process releases its port after a moment."""
    until = time.monotonic() + patience
    while _taken(port):
        if time.monotonic() > until:
            raise StackError(f"{name}: port {port} is taken by another program; choose one by --{name}-port")
        time.sleep(0.2)


def _taken(port: int) -> bool:
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex(("127.0.0.1", port)) == 0
