"""The resolver of models: a folder, S3 or the MLflow registry; every checksum is verified."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.pretrained.folder import MODEL, PretrainedModel, read_model
from voxveil.runtime.atomic import read_json
from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import DONE, file_sha256
from voxveil.runtime.dvc_experiments import fetch_outputs
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.model_cache import cached_folder, download, read_object
from voxveil.runtime.s3 import S3Uri, s3_client
from voxveil.tracking.client import Tracker, call_or_none, connect_to_read
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.models.addresses import DVCAddress, Pointer, RegistryAddress, parse_address
from voxveil.tracking.store import Store, resolve_store

__all__ = ["ARTIFACTS", "POINTER", "fetch_model", "fetch_registered", "locate_pretrained", "read_pointer"]

#: Folder of a version's files among the artifacts of its run, and the file that says where the bytes lie.
ARTIFACTS = "model"
POINTER = "pointer.json"
#: Checks every file of a model folder.
Check = Callable[[Path], object]


def locate_pretrained(text: str, kind: str, parameter: str) -> PretrainedModel:
    """Return the imported model that a parameter names, checked, and fetched where it is elsewhere.

    Args:
        text: The folder of ``voxveil model import``, ``s3://BUCKET/PREFIX`` with a copy of its files, or
            ``models:/NAME@ALIAS`` or ``models:/NAME/VERSION`` of a registered one.
        kind: The kind that the model must be of; empty accepts every kind.
        parameter: Dotted name of the parameter, or the option, for errors.

    Raises:
        InputError: The model does not exist, or is of another kind.
        IncompleteInputError: A file is missing or differs from its checksum.
        TrackingError: The registry is away.
    """
    address = parse_address(text, parameter)
    if address is None:
        folder = Path(text)
    elif isinstance(address, RegistryAddress):
        folder = fetch_registered(read_pointer(address, resolve_store(), MODEL), read_model)
    else:
        folder = fetch_model(address, read_object(address, SUMS, s3_client()), read_model)
    return read_model(folder, kind, parameter)


def fetch_model(address: S3Uri, sums: bytes, check: Check) -> Path:
    """Return the cached copy of a model in S3 whose ``SHA256SUMS`` is ``sums``."""
    digest = hashlib.sha256(sums).hexdigest()
    return cached_folder(digest, lambda folder: download(address, sums, folder), check)


def fetch_registered(pointer: Pointer, check: Check) -> Path:
    """Return the cached copy of a registered model."""
    return cached_folder(pointer.digest, lambda folder: _fetch(pointer, folder), check)


def read_pointer(address: RegistryAddress, store: Store, described: str = "") -> Pointer:
    """Return the pointer of a version; its artifacts must agree with its tags.

    Args:
        address: The version.
        store: MLflow.
        described: The file that describes such a model, ``bundle.json`` or ``model.json``; empty takes both.

    Raises:
        InputError: No such model, alias or version, one that voxveil did not register, or one of the other
            sort.
        IncompleteInputError: An artifact is missing or was changed.
        TrackingError: The store is away.
    """
    tracker = connect_to_read(store, f"{address}: not found")
    version = _version(tracker, address)
    expected = version.tags.get(f"{PREFIX}bundle")
    if not expected or not version.run_id:
        raise InputError(
            f"{address}: version {version.version} was not registered by 'voxveil model register'"
        )
    # Versions of bundles have carried no tag with the name of this file.
    description = version.tags.get(f"{PREFIX}description") or "bundle.json"
    if described not in ("", description):
        sorts = {"bundle.json": "a model bundle", MODEL: "an imported model"}
        raise InputError(f"{address}: is {sorts.get(description, description)}, must be {sorts[described]}")
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        with tracker.burst() as client:
            client.download_artifacts(version.run_id, ARTIFACTS, scratch)
        folder = Path(scratch) / ARTIFACTS
        for file in (POINTER, SUMS, description):
            if not (folder / file).is_file():
                raise IncompleteInputError(f"{address}: {file} is missing from version {version.version}")
        pointer = Pointer.from_json(read_json(folder / POINTER), f"{address}: {POINTER}")
        sums = parse_sums((folder / SUMS).read_text(encoding="utf-8"), f"{address}: {SUMS}", description)
        if not pointer.digest == file_sha256(folder / SUMS) == expected:
            raise IncompleteInputError(f"{address}: {SUMS}, {POINTER} and the version's tag do not agree")
        if file_sha256(folder / description) != sums[description]:
            raise IncompleteInputError(f"{address}: {description} differs from {SUMS} (SHA-256)")
    if str(pointer.address) != version.tags.get(f"{PREFIX}address"):
        raise IncompleteInputError(f"{address}: {POINTER} and the version's tag name different addresses")
    return pointer


def _version(tracker: Tracker, address: RegistryAddress) -> Any:
    with tracker.burst() as client:
        find = client.get_model_version_by_alias if address.alias else client.get_model_version
        codes = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
        version = call_or_none(find, address.name, address.alias or address.version, codes=codes)
    if version is None:
        raise InputError(f"{address}: no such model, alias or version at {tracker.store.shown}")
    return version


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
