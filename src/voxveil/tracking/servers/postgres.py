"""A PostgreSQL cluster from the system's packages, in its own folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from voxveil.tracking.servers.server import write_private
from voxveil.tracking.servers.settings import StackError

__all__ = ["Postgres"]

_USER, _DATABASE = "mlflow", "mlflow"


class Postgres:
    """One cluster, reached over TCP on loopback with a password.

    Args:
        folder: Made where it is not there; only its owner may enter it.
        port: TCP port.
        password: Of the user ``mlflow``.
    """

    name = "postgres"

    def __init__(self, folder: Path, port: int, password: str) -> None:
        self.folder = folder
        self.port = port
        self._password = password
        self._data = folder / "data"
        self.log = folder / "postgres.log"

    @property
    def url(self) -> str:
        """Address for SQLAlchemy; with plain ``postgresql://`` it would look for another driver."""
        return f"postgresql+psycopg2://{_USER}:{self._password}@127.0.0.1:{self.port}/{_DATABASE}"

    @staticmethod
    def tools() -> Path | None:
        """Return the folder of ``initdb`` and ``pg_ctl`` (Debian keeps them out of PATH)."""
        versions = sorted(
            Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3])
        )
        if versions:
            return versions[-1].parent
        found = shutil.which("pg_ctl")
        return Path(found).parent if found else None

    def running(self) -> bool:
        """Return whether the server runs."""
        if not (self._data / "PG_VERSION").is_file():
            return False
        return self._run("pg_ctl", "-D", str(self._data), "status").returncode == 0

    def start(self) -> None:
        """Create the cluster if missing, start it, and create the database.

        Raises:
            StackError: PostgreSQL is not installed or does not start.
        """
        if not (self._data / "PG_VERSION").is_file():
            self._create()
        if not self.running():
            options = (
                f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
                " -c max_connections=200"
            )
            arguments = ("-D", str(self._data), "-w", "-t", "120", "-l", str(self.log), "-o", options)
            done = self._run("pg_ctl", *arguments, "start")
            if done.returncode != 0:
                raise StackError(
                    f"PostgreSQL does not start: {_last(done.stdout + done.stderr)} ({self.log})"
                )
        self._make_database()

    def stop(self) -> bool:
        """Stop it, connections included; return whether it was running."""
        if not self.running():
            return False
        done = self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "fast", "stop")
        if done.returncode != 0:
            raise StackError(f"PostgreSQL does not stop: {_last(done.stderr)}")
        return True

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._hand_over(self.folder)
        # A set-up that was killed leaves a folder that initdb refuses.
        shutil.rmtree(self._data, ignore_errors=True)
        secret = self.folder / "password"
        write_private(secret, self._password)
        self._hand_over(secret)
        try:
            done = self._run(
                "initdb", "-D", str(self._data), "-A", "scram-sha-256", "-U", _USER,
                f"--pwfile={secret}", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions",
            )  # fmt: skip
        finally:
            secret.unlink(missing_ok=True)
        if done.returncode != 0:
            shutil.rmtree(self._data, ignore_errors=True)
            raise StackError(f"PostgreSQL cannot be set up in {self.folder}: {_last(done.stderr)}")

    def _make_database(self) -> None:
        from sqlalchemy import create_engine, text

        engine = create_engine(f"{self.url.removesuffix(_DATABASE)}postgres", isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                found = connection.execute(text(f"SELECT 1 FROM pg_database WHERE datname = '{_DATABASE}'"))
                if found.first() is None:
                    connection.execute(text(f"CREATE DATABASE {_DATABASE}"))
        finally:
            engine.dispose()

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        tools = self.tools()
        if tools is None:
            raise StackError("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        # PostgreSQL refuses to run as root; Debian's package makes a user for it.
        owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        # Files, not pipes: the server inherits them and would keep a pipe open for ever.
        out, err = self.folder / "out", self.folder / "err"
        with out.open("w") as stdout, err.open("w") as stderr:
            done = subprocess.run(
                [*owner, str(tools / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=self.folder,
                timeout=300,
                check=False,
            )
        texts = out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
        return subprocess.CompletedProcess(done.args, done.returncode, *texts)

    def _hand_over(self, path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, "postgres", "postgres")
        path.chmod(0o700 if path.is_dir() else 0o600)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
