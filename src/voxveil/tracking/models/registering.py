"""Registration of a model in MLflow as bundle.json, SHA256SUMS and pointer.json, without the weights.

Registering the same bytes at the same address again finds the version that is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.anonymize.bundle import Bundle, read_bundle
from voxveil.privacy.invariants import condition_text
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.s3 import S3Uri
from voxveil.tracking.client import Tracker, call_or_none, common_tags, connect, connect_to_read
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.models.addresses import DVCAddress, Pointer, RegistryAddress
from voxveil.tracking.store import Store

__all__ = [
    "Version",
    "find_alias",
    "model_tags",
    "move_alias",
    "read_pointer",
    "register_model",
    "tag_version",
]

_ARTIFACTS = "model"
_POINTER = "pointer.json"


def register_model(
    folder: Path, name: str, address: S3Uri | DVCAddress, store: Store, alias: str = ""
) -> str:
    """Register the bundle in ``folder`` and return the version.

    Args:
        folder: The bundle; every file is checked.
        name: Registered model.
        address: Where its bytes lie for everybody.
        store: MLflow.
        alias: Alias to move to this version, e.g. ``champion``.

    Raises:
        InputError: Not a bundle, or MLflow refuses the name.
        TrackingError: The store is away.
    """
    _require_name(name, alias)
    bundle = read_bundle(folder)
    sums = parse_sums((folder / SUMS).read_text(encoding="utf-8"), str(folder / SUMS), "bundle.json")
    size = sum((folder / file).stat().st_size for file in sums)
    pointer = Pointer(bundle.system, file_sha256(folder / SUMS), address, size)
    tracker = connect(store)
    tags = {**model_tags(bundle), "bundle": pointer.digest, "address": str(address)}
    version = _find_version(tracker, name, tags) or _make_version(tracker, name, folder, pointer, tags)
    if alias:
        with tracker.burst() as client:
            client.set_registered_model_alias(name, alias, version)
    return version


def model_tags(bundle: Bundle) -> dict[str, str]:
    """Return the tags of a model version: corpus, data revision, and privacy loss of each stream."""
    tags = {
        "system": bundle.system,
        "corpus": str(bundle.corpus.get("name", "")),
        "data_revision": str(bundle.corpus.get("revision", "")),
        "dataset": str((bundle.corpus.get("dataset") or {}).get("manifest_sha256", "")),
        "synthetic": str(bundle.corpus.get("synthetic", "")).lower(),
    }
    for stream, loss in bundle.rule.to_json().items():
        facts = {
            key: loss.get(key) for key in ("epsilon", "rho", "unit", "mechanism", "sensitivity", "measure")
        }
        tags.update({f"{key}.{stream}": _text(value) for key, value in facts.items() if value is not None})
        tags[f"given.{stream}"] = condition_text(loss["invariants"])
    return {key: value for key, value in tags.items() if value}


def read_pointer(address: RegistryAddress, store: Store) -> Pointer:
    """Return the pointer of a version; its artifacts must agree with its tags.

    Raises:
        InputError: No such model, alias or version, or one that voxveil did not register.
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
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        with tracker.burst() as client:
            client.download_artifacts(version.run_id, _ARTIFACTS, scratch)
        folder = Path(scratch) / _ARTIFACTS
        for file in (_POINTER, SUMS, "bundle.json"):
            if not (folder / file).is_file():
                raise IncompleteInputError(f"{address}: {file} is missing from version {version.version}")
        pointer = Pointer.from_json(read_json(folder / _POINTER), f"{address}: {_POINTER}")
        sums = parse_sums((folder / SUMS).read_text(encoding="utf-8"), f"{address}: {SUMS}", "bundle.json")
        if not pointer.digest == file_sha256(folder / SUMS) == expected:
            raise IncompleteInputError(f"{address}: {SUMS}, {_POINTER} and the version's tag do not agree")
        if file_sha256(folder / "bundle.json") != sums["bundle.json"]:
            raise IncompleteInputError(f"{address}: bundle.json differs from {SUMS} (SHA-256)")
    if str(pointer.address) != version.tags.get(f"{PREFIX}address"):
        raise IncompleteInputError(f"{address}: {_POINTER} and the version's tag name different addresses")
    return pointer


def _version(tracker: Tracker, address: RegistryAddress) -> Any:
    with tracker.burst() as client:
        find = client.get_model_version_by_alias if address.alias else client.get_model_version
        codes = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
        version = call_or_none(find, address.name, address.alias or address.version, codes=codes)
    if version is None:
        raise InputError(f"{address}: no such model, alias or version at {tracker.store.shown}")
    return version


def _find_version(tracker: Tracker, name: str, tags: Mapping[str, str]) -> str:
    with tracker.burst() as client:
        for version in client.search_model_versions(f"name = '{name}'"):
            if all(version.tags.get(f"{PREFIX}{key}") == tags[key] for key in ("bundle", "address")):
                return str(version.version)
    return ""


def _make_version(
    tracker: Tracker, name: str, folder: Path, pointer: Pointer, tags: Mapping[str, str]
) -> str:
    full = {f"{PREFIX}{key}": value for key, value in tags.items()}
    with tracker.burst() as client, tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        call_or_none(client.create_registered_model, name, codes=("RESOURCE_ALREADY_EXISTS",))
        write_json(Path(scratch) / _POINTER, pointer.to_json())
        run = client.create_run(
            tracker.experiment_id,
            tags={**common_tags(), **full, f"{PREFIX}role": "model"},
            run_name=f"model {name}",
        )
        run_id = str(run.info.run_id)
        for path in (folder / "bundle.json", folder / SUMS, Path(scratch) / _POINTER):
            client.log_artifact(run_id, str(path), _ARTIFACTS)
        client.set_terminated(run_id)
        created = client.create_model_version(
            name,
            f"{run.info.artifact_uri}/{_ARTIFACTS}",
            run_id,
            tags=full,
            description=_description(pointer, tags),
            await_creation_for=0,
        )
        return str(created.version)


def _description(pointer: Pointer, tags: Mapping[str, str]) -> str:
    promises = [
        f"- {_promised(tags, stream)} per {tags[f'unit.{stream}']} ({tags[f'mechanism.{stream}']},"
        f" {'L2' if f'rho.{stream}' in tags else 'L1'} sensitivity"
        f" {tags.get(f'sensitivity.{stream}', 'none')})"
        for stream in sorted(
            (key.removeprefix("epsilon.") for key in tags if key.startswith("epsilon.")),
            key=lambda stream: (stream != "pitch", stream),
        )
    ]
    heading = f"System **{pointer.system}**, trained on {tags.get('corpus', 'an unnamed corpus')}."
    note = " Synthetic speech: not fit for use." if tags.get("synthetic") == "true" else ""
    return "\n".join([heading + note, "", *promises, "", f"Bytes: `{pointer.address}`"])


def _promised(tags: Mapping[str, str], stream: str) -> str:
    rho = tags.get(f"rho.{stream}")
    if rho is not None:
        return f"zCDP ρ of {stream}, no ε: {rho}"
    given = tags.get(f"given.{stream}", "")
    return f"ε of {stream}: {tags[f'epsilon.{stream}']}{f' {given}, errors included,' if given else ''}"


def _require_name(name: str, alias: str) -> None:
    for option, text in (("--name", name), ("--alias", alias)):
        if (
            any(sign in text for sign in "/@:'\"")
            or text != text.strip()
            or (option == "--name" and not text)
        ):
            raise InputError(f"{option} {text!r}: must be a name without / @ : quotes or outer blanks")


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Version:
    """A version of a registered model.

    Attributes:
        number: As MLflow counts them.
        tags: Tags of ours, without their prefix.
    """

    number: str
    tags: Mapping[str, str]


def find_alias(name: str, alias: str, store: Store) -> Version | None:
    """Return the version with an alias; None if no version has it or the model does not exist.

    Raises:
        TrackingError: The store is away or refuses; that is not "nobody".
    """
    with connect(store).burst() as client:
        model = call_or_none(client.get_registered_model, name)
        if model is None or alias not in model.aliases:
            return None
        version = client.get_model_version_by_alias(name, alias)
    tags = {key.removeprefix(PREFIX): value for key, value in version.tags.items() if key.startswith(PREFIX)}
    return Version(str(version.version), tags)


def tag_version(name: str, version: str, tags: Mapping[str, str], store: Store) -> None:
    """Set tags (without prefix) of a version; empty values are left out."""
    with connect(store).burst() as client:
        for key, value in tags.items():
            if value:
                client.set_model_version_tag(name, version, f"{PREFIX}{key}", value)


def move_alias(name: str, alias: str, version: str, store: Store) -> None:
    """Move an alias to a version, away from the one that had it."""
    with connect(store).burst() as client:
        client.set_registered_model_alias(name, alias, version)
