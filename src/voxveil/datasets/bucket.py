"""Creation and verification of the dataset bucket: versioning, lifecycle rule, read and write access."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from voxveil.runtime.errors import DataError, one_line
from voxveil.runtime.s3 import s3_client, s3_endpoint, s3_error_code, s3_reason

__all__ = ["Bucket"]

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
                raise DataError(f"{self.shown}: versioning does not stay switched on")

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
        except DataError:
            raise
        except Exception as error:  # botocore's faults have no common base
            # ValueError: boto3's word for an endpoint that is no address.
            of_boto = type(error).__module__.partition(".")[0] in ("botocore", "boto3", "urllib3")
            if not of_boto and not isinstance(error, OSError | ValueError):
                raise
            raise DataError(f"{self.shown}: cannot {what} it: {s3_reason(error)}") from None
