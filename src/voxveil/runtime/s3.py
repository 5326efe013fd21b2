"""Clients for S3 and S3-compatible servers.

Credentials, region and endpoint come from the standard ``AWS_*`` variables.
"""

from __future__ import annotations

import os
from typing import Any

from voxveil.runtime.errors import MissingExtraError

__all__ = ["s3_client", "s3_endpoint", "s3_session"]


def s3_endpoint() -> str:
    """Return AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; empty means AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def s3_session() -> Any:
    """Return a boto3 session of its own, so that credentials are read anew.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    try:
        import boto3
    except ImportError:
        raise MissingExtraError("boto3", "data") from None
    return boto3.session.Session()


def s3_client(
    *,
    endpoint: str = "",
    region: str = "",
    connect_timeout: int = 5,
    read_timeout: int = 60,
    attempts: int = 3,
    keys: tuple[str, str, str] | None = None,
) -> Any:
    """Return an S3 client.

    Args:
        endpoint: Address of the server; by default :func:`s3_endpoint`.
        region: By default the session's, else ``us-east-1`` (servers of S3's kind ignore it).
        connect_timeout: Seconds.
        read_timeout: Seconds.
        attempts: Tries of one request.
        keys: Access key, secret key and session token (may be empty); by default what boto3 finds.
    """
    session = s3_session()
    from botocore.config import Config

    address = endpoint or s3_endpoint()
    options = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"max_attempts": attempts, "mode": "standard"},
        # Servers of S3's kind often know neither virtual hosts nor trailing checksums.
        s3={"addressing_style": "path"} if address else {},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    region_name = region or session.region_name or "us-east-1"
    access, secret, token = keys or ("", "", "")
    return session.client(
        "s3",
        endpoint_url=address or None,
        region_name=region_name,
        config=options,
        aws_access_key_id=access or None,
        aws_secret_access_key=secret or None,
        aws_session_token=token or None,
    )
