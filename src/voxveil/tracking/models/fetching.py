"""Download of models into the local cache, with every checksum verified."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from voxveil.anonymize.bundle import read_bundle
from voxveil.anonymize.recordings import bundle_folder
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.done import DONE, file_sha256
from voxveil.runtime.dvc_experiments import fetch_outputs
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.model_cache import cached_folder, download, read_object
from voxveil.runtime.s3 import S3Uri, s3_client
from voxveil.tracking.models.addresses import DVCAddress, Pointer, RegistryAddress, parse_address

__all__ = ["locate_model"]


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
        return cached_folder(pointer.digest, lambda folder: _fetch(pointer, folder), read_bundle)
    found, sums = _s3_bundle(address, system)
    digest = hashlib.sha256(sums).hexdigest()
    return cached_folder(digest, lambda folder: download(found, sums, folder), read_bundle)


def _fetch(pointer: Pointer, folder: Path) -> None:
    if isinstance(pointer.address, DVCAddress):
        _from_dvc(pointer.address, folder)
        found = file_sha256(folder / SUMS) if (folder / SUMS).is_file() else "nothing"
    else:
        sums = read_object(pointer.address, SUMS, s3_client())
        found = hashlib.sha256(sums).hexdigest()
        if found == pointer.digest:
            download(pointer.address, sums, folder)
    if found != pointer.digest:
        raise IncompleteInputError(
            f"{pointer.address}/{SUMS}: differs from the registered file (SHA-256 {found[:12]}, must be"
            f" {pointer.digest[:12]}); the bytes were replaced"
        )


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
        return chosen, read_object(chosen, SUMS, client)
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


def _resolve(address: RegistryAddress) -> Pointer:
    """Return the pointer of a registered version, held against its checksums in the registry."""
    from voxveil.tracking.models.registering import read_pointer
    from voxveil.tracking.store import resolve_store

    return read_pointer(address, resolve_store())
