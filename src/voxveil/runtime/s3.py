"""S3 addresses, clients and the wording of S3 faults, for AWS and compatible servers.

Credentials, region and endpoint come from the standard ``AWS_*`` variables. An address may also carry
endpoint and region in its query, where Kubeflow's pipeline root puts them. The query is never part of a key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

from voxveil.runtime.errors import InputError, VoxveilError, import_extra, one_line

__all__ = [
    "S3Uri",
    "is_s3_fault",
    "s3_client",
    "s3_endpoint",
    "s3_error_code",
    "s3_fault",
    "s3_faults",
    "s3_keys",
    "s3_reason",
    "s3_session",
    "s3_status",
]

_QUERY_OPTIONS = {"endpoint", "region", "disableSSL", "s3ForcePathStyle", "use_path_style", "awssdk"}
#: Meaning of an S3 error code for the person who typed the command.
_MEANING = {
    "InvalidAccessKeyId": "the access key is not known there",
    "SignatureDoesNotMatch": "the secret key does not fit the access key",
    "ExpiredToken": "the session token has expired",
    "InvalidToken": "the session token is not valid",
    "AccessDenied": "no permission",
    "AllAccessDisabled": "no permission",
    "403": "no permission, or wrong keys",
    "AuthorizationHeaderMalformed": "wrong region",
    "IllegalLocationConstraintException": "wrong region",
    "PermanentRedirect": "wrong region or endpoint",
    "301": "wrong region or endpoint",
    "InvalidBucketName": "not a valid bucket name",
    "BucketAlreadyExists": "the bucket belongs to somebody else",
    "NotImplemented": "the server cannot do this",
    "500": "the server fails, or does not speak S3",
    "503": "the server is overloaded or away",
    "RequestTimeTooSkewed": "the clocks differ too much",
}


@dataclass(frozen=True)
class S3Uri:
    """An address in an S3 store: ``s3://BUCKET/PREFIX``, or ``minio://`` for Kubeflow's own store.

    Attributes:
        bucket: Name of the bucket.
        prefix: Prefix of all keys, without slashes at its ends; empty for the whole bucket.
        endpoint: URL of the server; empty for :func:`s3_endpoint`.
        region: Region; empty for that of the environment.
        scheme: ``s3`` or ``minio``.
    """

    bucket: str
    prefix: str
    endpoint: str = ""
    region: str = ""
    scheme: str = "s3"

    @staticmethod
    def parse(
        text: str,
        *,
        name: str = "",
        schemes: tuple[str, ...] = ("s3",),
        whole_bucket: bool = False,
        query: bool = False,
    ) -> S3Uri:
        """Read an address.

        Args:
            text: The address.
            name: Name of the option, variable or object that holds it, for the error message.
            schemes: Allowed schemes.
            whole_bucket: An address without a prefix is allowed.
            query: A query with endpoint and region is allowed.

        Raises:
            InputError: Another scheme, no bucket or prefix, or an unknown option in the query.
        """
        shown = f"{name} {text}" if name else text
        scheme, separator, rest = text.partition("://")
        address, _, options_text = rest.partition("?")
        bucket, _, prefix = address.partition("/")
        prefix = prefix.strip("/")
        if (
            not separator
            or scheme not in schemes
            or not bucket
            or not (prefix or whole_bucket)
            or ("?" in text and not query)
            or "#" in text
        ):
            forms = " or ".join(f"{known}://BUCKET/PREFIX" for known in schemes)
            raise InputError(f"{shown}: must be {forms}")
        options = {key: values[-1] for key, values in parse_qs(options_text, keep_blank_values=True).items()}
        unknown = sorted(set(options) - _QUERY_OPTIONS)
        if unknown:
            known_options = ", ".join(sorted(_QUERY_OPTIONS))
            raise InputError(f"{shown}: unknown option {unknown[0]!r}; known: {known_options}")
        endpoint = options.get("endpoint", "")
        if endpoint and "://" not in endpoint:
            endpoint = f"{'http' if options.get('disableSSL') == 'true' else 'https'}://{endpoint}"
        return S3Uri(bucket, prefix, endpoint, options.get("region", ""), scheme)

    def key(self, name: str) -> str:
        """Return the key of the object ``name`` under the prefix."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def below(self, name: str) -> S3Uri:
        """Return the address of the prefix ``name`` under this one."""
        return replace(self, prefix=self.key(name))

    def __str__(self) -> str:
        query = "&".join(
            f"{option}={value}"
            for option, value in (("endpoint", self.endpoint), ("region", self.region))
            if value
        )
        return f"{self.scheme}://{self.bucket}/{self.prefix}" + (f"?{query}" if query else "")


def s3_endpoint() -> str:
    """Return AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; empty means AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def s3_session() -> Any:
    """Return a boto3 session of its own, so that credentials are read anew.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    return import_extra("boto3", "data").session.Session()


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


def s3_error_code(error: Exception) -> str:
    """Return the S3 error code of a botocore error, empty without one."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def s3_status(error: Exception) -> int | None:
    """Return the HTTP status of a botocore error, None without one."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None


def s3_reason(error: Exception) -> str:
    """Return what an S3 error means, and the text of the server, in one line."""
    name, code = type(error).__name__, s3_error_code(error)
    if name in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return "no keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them into .dvc/config.local"
    if name in (
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ReadTimeoutError",
    ):
        return f"wrong endpoint, or the server is away ({one_line(error)})"
    if name in ("SSLError", "ProxyConnectionError", "InvalidEndpointDiscoveryConfigurationError"):
        return f"wrong endpoint ({one_line(error)})"
    if name in ("InvalidRegionError",):
        return f"wrong region ({one_line(error)})"
    if name == "ResponseParserError":
        return "wrong endpoint, the server does not speak S3"
    meaning = _MEANING.get(code)
    return f"{meaning} ({one_line(error)})" if meaning else one_line(error) or name


def s3_fault(subject: object, action: str, error: Exception, *, server: bool = True) -> str:
    """Return one line that says what could not be done, at which server, and why.

    Args:
        subject: Address or object.
        action: Past participle: ``read``, ``deleted``, ``listed``.
        error: Error of boto3 or botocore.
        server: Name the server of the environment; not where the address may have a server of its own.
    """
    where = f" at {s3_endpoint()}" if server and s3_endpoint() else ""
    return f"{subject}{where}: cannot be {action} ({s3_reason(error)})"


@contextmanager
def s3_faults(
    subject: object, action: str, error: type[VoxveilError] = InputError, *, server: bool = True
) -> Iterator[None]:
    """Turn every fault of boto3 or the network in the block into an ``error`` of one line.

    Args:
        subject: Address or object.
        action: Past participle: ``read``, ``deleted``, ``written``.
        error: Class of the error.
        server: As for :func:`s3_fault`.
    """
    try:
        yield
    except Exception as fault:
        if not is_s3_fault(fault):
            raise
        raise error(s3_fault(subject, action, fault, server=server)) from None


def is_s3_fault(error: Exception) -> bool:
    """Return whether an error is of boto3 or the network; those of botocore have no common base.

    ValueError is what boto3 raises for an endpoint that is no address.
    """
    of_boto = type(error).__module__.partition(".")[0] in ("botocore", "boto3", "urllib3")
    return of_boto or isinstance(error, ConnectionError | TimeoutError | ValueError)


def s3_keys(client: Any, address: S3Uri) -> Iterator[str]:
    """Yield the key of every object below the prefix of an address."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=address.bucket, Prefix=address.key(""))
    for page in pages:
        for item in page.get("Contents", ()):
            yield item["Key"]
