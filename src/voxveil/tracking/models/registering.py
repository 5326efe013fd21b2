"""Registration of a model in MLflow by its description, SHA256SUMS and pointer.json, without the weights.

Registering the same bytes at the same address again finds the version that is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxveil.runtime.atomic import write_json
from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri
from voxveil.tracking.client import Tracker, call_or_none, common_tags, connect
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.models.addresses import DVCAddress, Pointer
from voxveil.tracking.models.contents import read_contents
from voxveil.tracking.models.fetching import ARTIFACTS, POINTER
from voxveil.tracking.store import Store

__all__ = [
    "Version",
    "find_alias",
    "move_alias",
    "register_model",
    "tag_version",
]


def register_model(
    folder: Path, name: str, address: S3Uri | DVCAddress, store: Store, alias: str = ""
) -> str:
    """Register the bundle or imported model in ``folder`` and return the version.

    Args:
        folder: The model; every file is checked.
        name: Registered model.
        address: Where its bytes lie for everybody.
        store: MLflow.
        alias: Alias to move to this version, e.g. ``champion``.

    Raises:
        InputError: Not a model, or MLflow refuses the name.
        TrackingError: The store is away.
    """
    _require_name(name, alias)
    contents = read_contents(folder)
    sums = parse_sums((folder / SUMS).read_text(encoding="utf-8"), str(folder / SUMS), contents.description)
    size = sum((folder / file).stat().st_size for file in sums)
    pointer = Pointer(contents.name, file_sha256(folder / SUMS), address, size)
    tracker = connect(store)
    tags = {**contents.tags, "bundle": pointer.digest, "address": str(address)}
    version = _find_version(tracker, name, tags)
    if not version:
        files = [folder / contents.description, folder / SUMS]
        version = _make_version(tracker, name, files, pointer, tags)
    if alias:
        with tracker.burst() as client:
            client.set_registered_model_alias(name, alias, version)
    return version


def _find_version(tracker: Tracker, name: str, tags: Mapping[str, str]) -> str:
    with tracker.burst() as client:
        for version in client.search_model_versions(f"name = '{name}'"):
            if all(version.tags.get(f"{PREFIX}{key}") == tags[key] for key in ("bundle", "address")):
                return str(version.version)
    return ""


def _make_version(
    tracker: Tracker, name: str, files: Sequence[Path], pointer: Pointer, tags: Mapping[str, str]
) -> str:
    full = {f"{PREFIX}{key}": value for key, value in tags.items()}
    with tracker.burst() as client, tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        call_or_none(client.create_registered_model, name, codes=("RESOURCE_ALREADY_EXISTS",))
        write_json(Path(scratch) / POINTER, pointer.to_json())
        run = client.create_run(
            tracker.experiment_id,
            tags={**common_tags(), **full, f"{PREFIX}role": "model"},
            run_name=f"model {name}",
        )
        run_id = str(run.info.run_id)
        for path in (*files, Path(scratch) / POINTER):
            client.log_artifact(run_id, str(path), ARTIFACTS)
        client.set_terminated(run_id)
        created = client.create_model_version(
            name,
            f"{run.info.artifact_uri}/{ARTIFACTS}",
            run_id,
            tags=full,
            description=_description(pointer, tags),
            await_creation_for=0,
        )
        return str(created.version)


def _description(pointer: Pointer, tags: Mapping[str, str]) -> str:
    if "architecture" in tags:
        heading = f"Imported model **{tags['architecture']}** of kind {tags['kind']}."
        rows = [f"- {name}: {tags[name]}" for name in ("licence", "source")]
        return "\n".join([heading, "", *rows, "", f"Bytes: `{pointer.address}`"])
    promises = [
        f"- {_promised(tags, stream)} per {tags[f'unit.{stream}']} ({tags[f'mechanism.{stream}']},"
        f" {'L2' if f'rho.{stream}' in tags else 'L1'} sensitivity"
        f" {tags.get(f'sensitivity.{stream}', 'none')})"
        for stream in ("pitch", "content")
        if f"epsilon.{stream}" in tags
    ]
    heading = f"System **{pointer.system}**, trained on {tags.get('corpus', 'an unnamed corpus')}."
    note = " Synthetic speech: not fit for use." if tags.get("synthetic") == "true" else ""
    return "\n".join([heading + note, "", *promises, "", f"Bytes: `{pointer.address}`"])


def _promised(tags: Mapping[str, str], stream: str) -> str:
    rho = tags.get(f"rho.{stream}")
    if rho is not None:
        return f"zCDP ρ of {stream}, no ε: {rho}"
    return f"ε of {stream}: {tags[f'epsilon.{stream}']}"


def _require_name(name: str, alias: str) -> None:
    for option, text in (("--name", name), ("--alias", alias)):
        if (
            any(sign in text for sign in "/@:'\"")
            or text != text.strip()
            or (option == "--name" and not text)
        ):
            raise InputError(f"{option} {text!r}: must be a name without / @ : quotes or outer blanks")


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
