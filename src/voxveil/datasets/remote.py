"""Setup of an S3 folder as a project's default DVC remote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.datasets.bucket import Bucket
from voxveil.datasets.git import git
from voxveil.runtime.dvc_program import dvc, require_dvc
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri

__all__ = ["Settings", "set_up"]

_SECRET = ("access_key_id", "secret_access_key", "session_token", "password")
_PATIENCE = {"connect_timeout": "5", "read_timeout": "60"}


@dataclass(frozen=True)
class Settings:
    """Options of ``voxveil data init``.

    Attributes:
        location: ``s3://BUCKET/PREFIX``.
        name: What DVC calls the remote.
        endpoint: Address of the server; empty means AWS.
        region: Empty leaves it to the environment.
        deleted_days: Days that deleted objects can still be had.
        upload_days: Days after which unfinished uploads are dropped.
    """

    location: str
    name: str = "team"
    endpoint: str = ""
    region: str = ""
    deleted_days: int = 90
    upload_days: int = 7


def set_up(root: Path, settings: Settings) -> list[str]:
    """Check bucket and permissions, then write DVC's configuration; return a report, line by line.

    Nothing is configured unless every check succeeded. Keys are never written: they come from
    ``AWS_*`` or from ``.dvc/config.local``, which Git ignores.

    Raises:
        InputError: Wrong arguments, secrets in ``.dvc/config``, or another remote of that name.
        DataError: The bucket cannot be used, in one line.
    """
    require_dvc()
    location = S3Uri.parse(settings.location, name="--remote")
    url = str(location)
    for option, days in (("--deleted-days", settings.deleted_days), ("--upload-days", settings.upload_days)):
        if days < 1:
            raise InputError(f"{option} {days}: must be at least 1")
    if settings.endpoint and not settings.endpoint.startswith(("http://", "https://")):
        raise InputError(f"--endpoint {settings.endpoint}: must start with http:// or https://")
    git(root, "rev-parse", "--git-dir")
    shared = _remotes(root, "repo")
    for remote, options in shared.items():
        secret = next((name for name in _SECRET if name in options), None)
        if secret:
            raise InputError(
                f"{root / '.dvc/config'}: remote {remote} has {secret}, and Git keeps this file; change that"
                f" key, 'dvc remote modify --unset {remote} {secret}', then"
                f" 'dvc remote modify --local {remote} {secret} ...'"
            )
    configured = shared.get(settings.name, {}).get("url", url)
    if configured != url:
        raise InputError(f"remote {settings.name}: is {configured} already; give another --name")
    bucket = Bucket(
        location.bucket,
        location.prefix,
        settings.endpoint,
        settings.region,
        _keys(_remotes(root, "local"), settings.name),
    )
    client = bucket.client()
    created = bucket.ensure(client)
    bucket.keep_versions(client)
    bucket.expire(client, settings.deleted_days, settings.upload_days)
    bucket.probe(client)
    _configure(root, settings, url)
    return [
        f"bucket {location.bucket}: {'made' if created else 'is there'}, versioning on",
        f"lifecycle of {location.prefix}/: deleted objects go after {settings.deleted_days} days,"
        f" unfinished uploads after {settings.upload_days}",
        "probe: written, read back, removed",
        f"DVC remote {settings.name} = {url} (default), in .dvc/config",
    ]


def _configure(root: Path, settings: Settings, url: str) -> None:
    dvc(root, "remote", "add", "--default", "--force", settings.name, url)
    options = {"endpointurl": settings.endpoint, "region": settings.region, **_PATIENCE}
    for name, value in options.items():
        if value:
            dvc(root, "remote", "modify", settings.name, name, value)


def _remotes(root: Path, level: str) -> dict[str, dict[str, Any]]:
    from dvc.config import Config

    config = Config(dvc_dir=str(root / ".dvc"), validate=False).load_one(level)
    return {str(name): dict(options) for name, options in config.get("remote", {}).items()}


def _keys(local: dict[str, dict[str, Any]], name: str) -> tuple[str, str, str] | None:
    options = local.get(name, {})
    if "access_key_id" not in options or "secret_access_key" not in options:
        return None
    return options["access_key_id"], options["secret_access_key"], options.get("session_token", "")
