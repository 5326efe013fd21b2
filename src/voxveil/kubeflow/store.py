"""Reader of finished outputs from Kubeflow's artifact store, a folder or S3.

Addresses, credentials, region and endpoint: :mod:`voxveil.runtime.s3`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri, s3_client, s3_endpoint, s3_faults, s3_keys, s3_session

__all__ = ["check_reachable", "fetch", "parse_location", "seen_from"]

#: Schemes of Kubeflow's artifact stores.
_SCHEMES = ("s3", "minio")


def parse_location(uri: str) -> S3Uri | None:
    """Return the address of an ``s3://`` or ``minio://`` URI; None for a local path.

    Raises:
        InputError: Another scheme, no bucket or prefix, or an unknown option in the query.
    """
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme == "file":
        return None
    if scheme not in _SCHEMES:
        raise InputError(f"{uri}: must be a path or a URI of {', '.join(_SCHEMES)} or file, got {scheme}")
    return S3Uri.parse(uri, schemes=_SCHEMES, query=True)


def seen_from(uri: str, endpoint: str) -> str:
    """Return ``uri`` with ``endpoint`` as its server; a local path or empty endpoint changes nothing."""
    location = parse_location(uri) if endpoint else None
    if location is None:
        return uri
    return str(replace(location, endpoint=endpoint))


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
    with s3_faults(uri, "read", server=False):
        client = s3_client(endpoint=location.endpoint, region=location.region, connect_timeout=10, attempts=5)
        count = 0
        for key, relative in _objects(client, location, uri):
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(location.bucket, key, str(target))
            count += 1
    if not count:
        raise InputError(f"{uri}: nothing is stored there")


def _objects(client: Any, location: S3Uri, uri: str) -> Iterator[tuple[str, str]]:
    for key in s3_keys(client, location):
        relative = key.removeprefix(location.key(""))
        if not relative or relative.endswith("/"):
            continue
        if relative.startswith("/") or ".." in PurePosixPath(relative).parts:
            raise InputError(f"{uri}: object {key!r} would be written outside its folder")
        yield key, relative
