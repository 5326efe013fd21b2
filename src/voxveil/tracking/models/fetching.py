"""Download of models into the local cache, with every checksum verified."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.anonymize.bundle import BUNDLE, read_bundle
from voxveil.anonymize.recordings import bundle_folder
from voxveil.pretrained.folder import read_model
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import DONE, file_sha256
from voxveil.runtime.dvc_experiments import fetch_outputs
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.s3 import S3Uri, s3_client, s3_error_code, s3_faults
from voxveil.tracking.models.addresses import DVCAddress, Pointer, RegistryAddress, parse_address

__all__ = ["locate_model", "locate_pretrained"]


def cache_root() -> Path:
    """Return the folder of fetched models: ``VOXVEIL_CACHE``, else ``$XDG_CACHE_HOME/voxveil``."""
    chosen = os.environ.get("VOXVEIL_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voxveil"
    return (Path(chosen) if chosen else base) / "models"


def locate_model(text: str, system: str | None = None) -> Path:
    """Return the folder of the bundle that ``--model`` and ``--system`` name, fetched where it is elsewhere.

    Args:
        text: A folder, ``s3://BUCKET/PREFIX``, ``models:/NAME@ALIAS`` or ``models:/NAME/VERSION``.
        system: Which bundle, where a folder or prefix holds several.

    Raises:
        InputError: There is no such model, or it cannot be reached.
        IncompleteInputError: A file is missing or differs from its checksum.
    """
    address = parse_address(text)
    if address is None:
        return bundle_folder(Path(text), system)
    if isinstance(address, RegistryAddress):
        pointer = _resolve(address)
        if system not in (None, pointer.system):
            raise InputError(f"--system must be {pointer.system}, as {address} holds it, got {system}")
        return _cached(pointer.digest, lambda folder: _fetch(pointer, folder))
    found, sums = _s3_bundle(address, system)
    digest = hashlib.sha256(sums).hexdigest()
    return _cached(digest, lambda folder: _from_s3(found, sums, folder))


def locate_pretrained(text: str, kind: str, parameter: str) -> Path:
    """Return the folder of the imported model that a parameter names, fetched where it is in S3.

    Args:
        text: The folder of ``voxveil model import``, or ``s3://BUCKET/PREFIX`` with a copy of its files.
        kind: The kind that the model must be of.
        parameter: Dotted name of the parameter, for errors.

    Raises:
        InputError: There is no such model, or it is of another kind.
        IncompleteInputError: A file is missing or differs from its checksum.
    """
    if text.startswith("s3://"):
        address = S3Uri.parse(text, name=parameter)
        sums = _get(address, SUMS, s3_client())
        digest = hashlib.sha256(sums).hexdigest()
        folder = _cached(digest, lambda partial: _from_s3(address, sums, partial))
    else:
        folder = Path(text)
    read_model(folder, kind, parameter)
    return folder


def _cached(digest: str, fetch: Callable[[Path], None]) -> Path:
    """Return the cached bundle, checked; fetch it where it is absent or was damaged.

    Two processes may fetch at once: each writes aside, one of the two is kept.
    """
    folder = cache_root() / digest
    if folder.is_dir():
        try:
            return _checked(folder, digest)
        except InputError:
            shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{digest[:12]}.", dir=folder.parent) as scratch:
        partial = Path(scratch) / "bundle"
        partial.mkdir()
        fetch(partial)
        _checked(partial, digest)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return _checked(folder, digest)


def _checked(folder: Path, digest: str) -> Path:
    if not (folder / SUMS).is_file() or file_sha256(folder / SUMS) != digest:
        raise IncompleteInputError(f"{folder / SUMS}: differs from the registered file (SHA-256)")
    if (folder / BUNDLE).is_file():
        read_bundle(folder)
    else:
        read_model(folder)
    return folder


def _fetch(pointer: Pointer, folder: Path) -> None:
    if isinstance(pointer.address, DVCAddress):
        _from_dvc(pointer.address, folder)
        found = file_sha256(folder / SUMS) if (folder / SUMS).is_file() else "nothing"
    else:
        sums = _get(pointer.address, SUMS, s3_client())
        found = hashlib.sha256(sums).hexdigest()
        if found == pointer.digest:
            _from_s3(pointer.address, sums, folder)
    if found != pointer.digest:
        raise IncompleteInputError(
            f"{pointer.address}/{SUMS}: differs from the registered file (SHA-256 {found[:12]}, must be"
            f" {pointer.digest[:12]}); the bytes were replaced"
        )


def _from_s3(address: S3Uri, sums: bytes, folder: Path) -> None:
    client = s3_client()
    for name, digest in parse_sums(sums.decode("utf-8", "replace"), f"{address}/{SUMS}").items():
        data = _get(address, name, client)
        if hashlib.sha256(data).hexdigest() != digest:
            raise IncompleteInputError(f"{address}/{name}: differs from {SUMS} (SHA-256)")
        write_bytes(folder / name, data)
    write_bytes(folder / SUMS, sums)


def _from_dvc(address: DVCAddress, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            fetch_outputs(address.repository, address.commit, Path(scratch), (address.path,))
        except InputError as error:
            raise InputError(
                f"{error}; whoever registered the model must 'git push' and 'dvc push' that commit, or"
                " register it again with --to s3://BUCKET/PREFIX"
            ) from None
        shutil.copytree(
            Path(scratch) / address.path, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(DONE)
        )


def _s3_bundle(address: S3Uri, system: str | None) -> tuple[S3Uri, bytes]:
    """Return the prefix that holds the bundle, and its SHA256SUMS."""
    client = s3_client()
    chosen = address if system is None else address.below(system)
    try:
        return chosen, _get(chosen, SUMS, client)
    except IncompleteInputError:
        known = _systems(address, client)
        held = f"; it holds {', '.join(known)}: choose one by --system" if known else ""
        raise InputError(f"--model {chosen}: not a model bundle (no {SUMS}){held}") from None


def _systems(address: S3Uri, client: Any) -> list[str]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        listing = client.list_objects_v2(Bucket=address.bucket, Prefix=f"{address.prefix}/", Delimiter="/")
        names = [item["Prefix"].rstrip("/").rpartition("/")[2] for item in listing.get("CommonPrefixes", ())]
        return [
            name
            for name in names
            if client.list_objects_v2(
                Bucket=address.bucket, Prefix=address.below(name).key("bundle.json"), MaxKeys=1
            ).get("KeyCount")
        ]
    except (BotoCoreError, ClientError):
        # Only a hint hangs on it: whoever may read objects may be forbidden to list them.
        return []


def _get(address: S3Uri, name: str, client: Any) -> bytes:
    with s3_faults(f"{address}/{name}", "read"):
        try:
            return bytes(client.get_object(Bucket=address.bucket, Key=address.key(name))["Body"].read())
        except Exception as error:
            if s3_error_code(error) in ("NoSuchKey", "404"):
                raise IncompleteInputError(f"{address}/{name}: missing") from None
            raise


def _resolve(address: RegistryAddress) -> Pointer:
    """Return the pointer of a registered version, held against its checksums in the registry."""
    from voxveil.tracking.models.registering import read_pointer
    from voxveil.tracking.store import resolve_store

    return read_pointer(address, resolve_store())
