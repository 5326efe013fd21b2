"""Reader of finished outputs from Kubeflow's artifact store, a folder or S3.

Credentials, region and endpoint come from the standard AWS_* variables; an endpoint, a region
and the path style may also stand in the query of the URI, where Kubeflow's pipeline root puts
them. The query is never part of a key.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs

from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import s3_client, s3_endpoint, s3_session

__all__ = ["Location", "check_reachable", "fetch", "parse_location", "seen_from"]

_SCHEMES = ("s3", "minio")
_OPTIONS = {"endpoint", "region", "disableSSL", "s3ForcePathStyle", "use_path_style", "awssdk"}


@dataclass(frozen=True)
class Location:
    """A prefix in an S3 store.

    Attributes:
        bucket: Name of the bucket.
        key: Prefix of all keys, without a slash at the end.
        endpoint: URL of the server, empty for AWS.
        region: Region, empty to take AWS_REGION or the configured one.
    """

    bucket: str
    key: str
    endpoint: str = ""
    region: str = ""


def parse_location(uri: str) -> Location | None:
    """Return bucket, key and endpoint of an ``s3://`` or ``minio://`` URI; None for a local path.

    Raises:
        InputError: Another scheme, no bucket or key, or an unknown option in the query.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return None
    if scheme == "file":
        return None
    if scheme not in _SCHEMES:
        raise InputError(f"{uri}: must be a path or a URI of {', '.join(_SCHEMES)} or file, got {scheme}")
    address, _, query = rest.partition("?")
    bucket, _, key = address.partition("/")
    key = key.strip("/")
    if not bucket or not key:
        raise InputError(f"{uri}: must be {scheme}://BUCKET/KEY")
    options = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise InputError(f"{uri}: unknown option {unknown[0]!r}; known: {', '.join(sorted(_OPTIONS))}")
    endpoint = options.get("endpoint", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{'http' if options.get('disableSSL') == 'true' else 'https'}://{endpoint}"
    return Location(bucket, key, endpoint, options.get("region", ""))


def seen_from(uri: str, endpoint: str) -> str:
    """Return ``uri`` with ``endpoint`` as its server; a local path or empty endpoint changes nothing."""
    location = parse_location(uri) if endpoint else None
    if location is None:
        return uri
    region = f"&region={location.region}" if location.region else ""
    return f"{uri.partition('://')[0]}://{location.bucket}/{location.key}?endpoint={endpoint}{region}"


def check_reachable(uri: str) -> None:
    """Check before any work that ``uri`` can be read with the configured credentials.

    Raises:
        InputError: One line that says which of endpoint, region and credentials is missing.
    """
    location = parse_location(uri)
    if location is None:
        return
    session = s3_session()
    endpoint = location.endpoint or s3_endpoint()
    if uri.startswith("minio://") and not endpoint:
        raise InputError(f"{uri}: needs the server's address; set AWS_ENDPOINT_URL")
    if not endpoint and not (location.region or session.region_name):
        raise InputError(f"{uri}: needs a region; set AWS_REGION, or AWS_ENDPOINT_URL for another server")
    if session.get_credentials() is None:
        raise InputError(f"{uri}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a role")


def fetch(uri: str, folder: Path) -> None:
    """Copy everything at ``uri`` into ``folder``.

    Args:
        uri: A path, ``file://``, ``s3://`` or ``minio://``.
        folder: A folder that does not exist yet.

    Raises:
        InputError: Nothing is there, or the store refuses.
    """
    location = parse_location(uri)
    if location is None:
        source = Path(uri.removeprefix("file://"))
        if not source.is_dir():
            raise InputError(f"{uri}: no such folder")
        shutil.copytree(source, folder)
        return
    import botocore.exceptions

    try:
        client = s3_client(endpoint=location.endpoint, region=location.region, connect_timeout=10, attempts=5)
        count = 0
        for key, relative in _objects(client, location, uri):
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(location.bucket, key, str(target))
            count += 1
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
        raise InputError(f"{uri}: cannot be read ({' '.join(str(error).split())})") from None
    if not count:
        raise InputError(f"{uri}: nothing is stored there")


def _objects(client: Any, location: Location, uri: str) -> Iterator[tuple[str, str]]:
    prefix = f"{location.key}/"
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=location.bucket, Prefix=prefix):
        for item in page.get("Contents", []):
            relative = item["Key"].removeprefix(prefix)
            if not relative or relative.endswith("/"):
                continue
            if relative.startswith("/") or ".." in PurePosixPath(relative).parts:
                raise InputError(f"{uri}: object {item['Key']!r} would be written outside its folder")
            yield item["Key"], relative
