"""The local cache of model folders by digest, and their download from S3 with every checksum verified."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.s3 import S3Uri, s3_client, s3_error_code, s3_faults

__all__ = ["cached_folder", "download", "read_object"]


def _cache_root() -> Path:
    """Return the folder of fetched models: ``VOXVEIL_CACHE``, else ``$XDG_CACHE_HOME/voxveil``."""
    chosen = os.environ.get("VOXVEIL_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voxveil"
    return (Path(chosen) if chosen else base) / "models"


def cached_folder(digest: str, fetch: Callable[[Path], None], check: Callable[[Path], object]) -> Path:
    """Return the cached model, checked; fetch it where it is absent or was damaged.

    Two processes may fetch at once: each writes aside, and one of the two results is kept.

    Args:
        digest: SHA-256 of the model's ``SHA256SUMS``.
        fetch: Writes the model into an empty folder.
        check: Checks every file of a model folder.

    Raises:
        InputError: The fetched model is damaged or is another one.
    """
    folder = _cache_root() / digest
    if folder.is_dir():
        try:
            return _checked(folder, digest, check)
        except InputError:
            shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{digest[:12]}.", dir=folder.parent) as scratch:
        partial = Path(scratch) / "model"
        partial.mkdir()
        fetch(partial)
        _checked(partial, digest, check)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return _checked(folder, digest, check)


def _checked(folder: Path, digest: str, check: Callable[[Path], object]) -> Path:
    if not (folder / SUMS).is_file() or file_sha256(folder / SUMS) != digest:
        raise IncompleteInputError(f"{folder / SUMS}: differs from the registered file (SHA-256)")
    check(folder)
    return folder


def download(address: S3Uri, sums: bytes, folder: Path) -> None:
    """Copy the files that ``SHA256SUMS`` lists from S3 into a folder.

    Args:
        address: Prefix of the model.
        sums: Content of its ``SHA256SUMS``.
        folder: Where to.

    Raises:
        IncompleteInputError: A file is missing or differs from its checksum.
    """
    client = s3_client()
    for name, digest in parse_sums(sums.decode("utf-8", "replace"), f"{address}/{SUMS}").items():
        data = read_object(address, name, client)
        if hashlib.sha256(data).hexdigest() != digest:
            raise IncompleteInputError(f"{address}/{name}: differs from {SUMS} (SHA-256)")
        write_bytes(folder / name, data)
    write_bytes(folder / SUMS, sums)


def read_object(address: S3Uri, name: str, client: Any) -> bytes:
    """Return the bytes of ``address/name``.

    Raises:
        IncompleteInputError: No such object.
    """
    with s3_faults(f"{address}/{name}", "read"):
        try:
            return bytes(client.get_object(Bucket=address.bucket, Key=address.key(name))["Body"].read())
        except Exception as error:
            if s3_error_code(error) in ("NoSuchKey", "404"):
                raise IncompleteInputError(f"{address}/{name}: missing") from None
            raise
