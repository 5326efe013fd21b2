"""Setup of an S3 folder as a project's default DVC remote."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from voxveil.datasets.git import git
from voxveil.runtime.dvc_program import dvc, require_dvc
from voxveil.runtime.errors import DataError, InputError, one_line
from voxveil.runtime.s3 import S3Uri, is_s3_fault, s3_client, s3_endpoint, s3_error_code, s3_reason

__all__ = ["Bucket", "Settings", "set_up"]

T = TypeVar("T")

_ABSENT = {"NoSuchBucket", "404"}


@dataclass(frozen=True)
class Bucket:
    """Access to one bucket; an unreachable or wrong server is an error within half a minute.

    Attributes:
        bucket: Its name.
        prefix: Folder in it.
        endpoint: Address of the server; empty means AWS.
        region: Asked for; empty leaves it to the environment.
        keys: Access key, secret key, session token; None leaves them to the environment.
    """

    bucket: str
    prefix: str
    endpoint: str = ""
    region: str = ""
    keys: tuple[str, str, str] | None = None

    @property
    def shown(self) -> str:
        """Address of the bucket in messages."""
        address = self.endpoint or s3_endpoint() or "AWS"
        region = f", region {self.region}" if self.region else ""
        return f"s3://{self.bucket} at {address}{region}"

    def client(self) -> Any:
        """Return a client.

        Raises:
            DataError: Endpoint or region have no meaning.
        """
        return self._ask("connect", self._connect)

    def _connect(self) -> Any:
        # One retry of 5 + 8 seconds stays under half a minute.
        options: Mapping[str, Any] = {"connect_timeout": 5, "read_timeout": 8, "attempts": 1}
        return s3_client(endpoint=self.endpoint, region=self.region, keys=self.keys, **options)

    def ensure(self, client: Any) -> bool:
        """Create the bucket if it does not exist; return whether it was created.

        Raises:
            DataError: No access, no permission, or it lies in another region than ``region``.
        """
        missing = not self._ask("list", lambda: self._exists(client))
        if missing:
            region = client.meta.region_name
            # AWS itself refuses its first region as a constraint.
            constraint = {} if region == "us-east-1" else {"LocationConstraint": region}
            options = {"CreateBucketConfiguration": constraint} if constraint else {}
            self._ask("create", lambda: client.create_bucket(Bucket=self.bucket, **options))
        elif self.region and not (self.endpoint or s3_endpoint()):
            found = self._ask("locate", lambda: client.get_bucket_location(Bucket=self.bucket))
            actual = found.get("LocationConstraint") or "us-east-1"
            if actual != self.region:
                raise DataError(f"{self.shown}: wrong region, the bucket lies in {actual}")
        return missing

    def _exists(self, client: Any) -> bool:
        try:
            # Not HeadBucket: its answer has no body, and so no reason for a refusal.
            client.list_objects_v2(Bucket=self.bucket, Prefix=f"{self.prefix}/", MaxKeys=1)
        except Exception as error:
            if s3_error_code(error) in _ABSENT:
                return False
            raise
        return True

    def keep_versions(self, client: Any) -> None:
        """Switch versioning on, and check that it is.

        Raises:
            DataError: The server refuses or does not keep it.
        """

        def status() -> Any:
            return client.get_bucket_versioning(Bucket=self.bucket).get("Status")

        if self._ask("read the versioning of", status) != "Enabled":
            on = {"Status": "Enabled"}
            self._ask(
                "version",
                lambda: client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration=on),
            )
            if self._ask("read the versioning of", status) != "Enabled":
                raise DataError(f"{self.shown}: the server does not keep versioning switched on")

    def expire(self, client: Any, deleted_days: int, upload_days: int) -> None:
        """Set the rule that cleans up under the prefix; rules of others stay.

        Args:
            client: From :meth:`client`.
            deleted_days: Days that a deleted or overwritten object can still be had.
            upload_days: Days after which an upload that never ended is dropped.

        Raises:
            DataError: The server refuses or does not keep it.
        """
        rule = {
            "ID": f"voxveil-{self.prefix.replace('/', '-')}",
            "Status": "Enabled",
            "Filter": {"Prefix": f"{self.prefix}/"},
            "NoncurrentVersionExpiration": {"NoncurrentDays": deleted_days},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": upload_days},
        }
        before = self._ask("read the lifecycle rules of", lambda: self._rules(client))
        others = [other for other in before if other.get("ID") != rule["ID"]]
        self._ask(
            "set the lifecycle rules of",
            lambda: client.put_bucket_lifecycle_configuration(
                Bucket=self.bucket, LifecycleConfiguration={"Rules": [*others, rule]}
            ),
        )
        after = self._ask("read the lifecycle rules of", lambda: self._rules(client))
        kept = next((other for other in after if other.get("ID") == rule["ID"]), {})
        days = kept.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays")
        aborted = kept.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
        if (days, aborted, kept.get("Status")) != (deleted_days, upload_days, "Enabled"):
            raise DataError(f"{self.shown}: the lifecycle rule reads back differently: {one_line(kept)}")

    def _rules(self, client: Any) -> list[dict[str, Any]]:
        try:
            return list(client.get_bucket_lifecycle_configuration(Bucket=self.bucket).get("Rules", []))
        except Exception as error:
            if s3_error_code(error) == "NoSuchLifecycleConfiguration":
                return []
            raise

    def probe(self, client: Any) -> None:
        """Write an object under the prefix, read it back, and remove it permanently.

        Raises:
            DataError: One of these fails.
        """
        key, content = f"{self.prefix}/voxveil-probe-{secrets.token_hex(8)}", secrets.token_bytes(1024)
        written = self._ask("write to", lambda: client.put_object(Bucket=self.bucket, Key=key, Body=content))
        read = self._ask("read from", lambda: client.get_object(Bucket=self.bucket, Key=key)["Body"].read())
        version = written.get("VersionId")
        options = {"VersionId": version} if version else {}
        self._ask("delete from", lambda: client.delete_object(Bucket=self.bucket, Key=key, **options))
        if read != content:
            raise DataError(f"{self.shown}: an object reads back differently from what was written")

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            if not is_s3_fault(error):
                raise
            raise DataError(f"{self.shown}: cannot {what} it: {s3_reason(error)}") from None


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
