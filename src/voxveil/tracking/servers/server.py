"""Start of the MLflow server, the same in the image, in ``voxveil stack up`` and in tests."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from voxveil.runtime.s3 import S3Uri, s3_client, s3_reason, s3_status
from voxveil.tracking.servers.settings import ServerSettings, StackError, setting

__all__ = ["PasswordError", "probe", "server_command", "server_environment", "serve"]


class PasswordError(StackError):
    """The MLflow server answers, and does not take the password."""


def server_command(settings: ServerSettings) -> list[str]:
    """Return the command, without passwords, as every user of a machine can read commands."""
    return [
        sys.executable, "-m", "mlflow", "server",
        "--host", settings.bind, "--port", str(settings.port), "--workers", str(settings.workers),
        "--serve-artifacts", "--app-name", "basic-auth",
    ]  # fmt: skip


def server_environment(
    settings: ServerSettings, auth_ini: Path, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of the server.

    Args:
        settings: Checked settings.
        auth_ini: File with :meth:`ServerSettings.auth_ini`, readable for the server alone.
        environ: The rest: S3 keys and endpoint, PATH.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(("MLFLOW_", "VOXVEIL_"))}
    endpoint = environ.get("MLFLOW_S3_ENDPOINT_URL") or environ.get("AWS_ENDPOINT_URL")
    return {
        **kept,
        **({"MLFLOW_S3_ENDPOINT_URL": endpoint} if endpoint else {}),
        "MLFLOW_BACKEND_STORE_URI": settings.database,
        "MLFLOW_ARTIFACTS_DESTINATION": settings.artifacts,
        "MLFLOW_AUTH_CONFIG_PATH": str(auth_ini),
        "MLFLOW_AUTH_ADMIN_USERNAME": settings.admin,
        "MLFLOW_AUTH_ADMIN_PASSWORD": settings.admin_password,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": settings.secret_key,
        "MLFLOW_SERVER_ALLOWED_HOSTS": settings.allowed_hosts,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        # Nothing of ours runs jobs on the server.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner can read, and return its path."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    return path


def serve(environ: Mapping[str, str]) -> None:
    """Check the settings, prepare the database, and become the server (the process is replaced).

    Raises:
        StackError: A setting is missing or unsafe, or the database is not ready.
    """
    from voxveil.tracking.servers.database import prepare_database

    settings = ServerSettings.from_environment(environ)
    prepare_database(settings)
    prepare_bucket(settings, environ)
    folder = Path(tempfile.mkdtemp(prefix="voxveil-mlflow-"))
    ini = write_private(folder / "auth.ini", settings.auth_ini())
    resolved = dict(environ)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        if f"{name}_FILE" in environ:
            resolved[name] = Path(environ[f"{name}_FILE"]).read_text(encoding="utf-8").strip()
    command = server_command(settings)
    os.execvpe(command[0], command, server_environment(settings, ini, resolved))


def prepare_bucket(settings: ServerSettings, environ: Mapping[str, str], patience: float = 60.0) -> None:
    """Create the artifact bucket if it does not exist; waits for a store that is starting.

    Raises:
        StackError: The store is away or refuses.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    bucket = S3Uri.parse(settings.artifacts, whole_bucket=True).bucket
    endpoint = environ.get("MLFLOW_S3_ENDPOINT_URL") or environ.get("AWS_ENDPOINT_URL")
    keys = setting(environ, "AWS_ACCESS_KEY_ID"), setting(environ, "AWS_SECRET_ACCESS_KEY"), ""
    region = environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or ""
    client = s3_client(endpoint=endpoint or "", region=region, keys=keys, read_timeout=20, attempts=1)
    until = time.monotonic() + patience
    while True:
        try:
            client.head_bucket(Bucket=bucket)
            return
        except ClientError as error:
            status = s3_status(error)
            if status != 404 and (status is None or status < 500):
                where = endpoint or "AWS"
                raise StackError(f"bucket {bucket} at {where}: refused (status {status})") from None
            reason = s3_reason(error)
            if status == 404:
                try:
                    client.create_bucket(Bucket=bucket)
                    return
                except (BotoCoreError, ClientError) as again:
                    reason = s3_reason(again)
        except BotoCoreError as error:
            reason = s3_reason(error)
        if time.monotonic() > until:
            raise StackError(f"bucket {bucket} at {endpoint or 'AWS'}: {reason}")
        time.sleep(1)


def probe(address: str, user: str, password: str, *, timeout: float = 5.0) -> None:
    """Make an authenticated API call; ``/health`` also answers hosts and users that the API refuses.

    Args:
        address: ``http://HOST:PORT``.
        user: Name.
        password: Password.
        timeout: Seconds.

    Raises:
        PasswordError: The server does not take the password.
        StackError: The server is away or refuses.
    """
    request = urllib.request.Request(
        f"{address.rstrip('/')}/api/2.0/mlflow/experiments/search",
        data=json.dumps({"max_results": 1}).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        refusal = PasswordError if error.code == 401 else StackError
        raise refusal(f"MLflow at {address}: refuses user {user} (status {error.code})") from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise StackError(f"MLflow at {address}: cannot be reached ({reason})") from None
