"""What can be registered and fetched: bundles and imported models, and where the folder of one lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.anonymize.bundle import BUNDLE, Bundle, read_bundle
from voxveil.anonymize.recordings import bundle_folder
from voxveil.pretrained.folder import MODEL, read_model
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.model_cache import read_object
from voxveil.runtime.s3 import S3Uri, s3_client
from voxveil.tracking.models.addresses import RegistryAddress, parse_address
from voxveil.tracking.models.fetching import fetch_model, fetch_registered, read_pointer
from voxveil.tracking.store import resolve_store

__all__ = ["Contents", "locate_model", "model_tags", "read_contents"]


@dataclass(frozen=True)
class Contents:
    """What a model folder holds.

    Attributes:
        name: The system of a bundle, the architecture of an imported model.
        description: The file that describes it.
        tags: Tags of its version.
    """

    name: str
    description: str
    tags: Mapping[str, str]


def read_contents(folder: Path) -> Contents:
    """Check every file of a bundle or imported model and return what it holds.

    Raises:
        InputError: It is neither.
        IncompleteInputError: A file is missing or changed.
    """
    if (folder / MODEL).is_file() and not (folder / BUNDLE).is_file():
        model = read_model(folder)
        return Contents(
            model.architecture, MODEL, {"kind": model.kind, **model.facts(), "description": MODEL}
        )
    bundle = read_bundle(folder)
    return Contents(bundle.system, BUNDLE, model_tags(bundle))


def locate_model(text: str, system: str | None = None, *, imported: bool = False) -> Path:
    """Return the folder of the model that ``--model`` and ``--system`` name, fetched where it is elsewhere.

    Args:
        text: A folder, ``s3://BUCKET/PREFIX``, ``models:/NAME@ALIAS`` or ``models:/NAME/VERSION``.
        system: Which bundle, where a folder or prefix holds several.
        imported: An imported model is taken too, not bundles alone.

    Raises:
        InputError: There is no such model, or it cannot be reached.
        IncompleteInputError: A file is missing or differs from its checksum.
    """
    address, check = parse_address(text), read_contents if imported else read_bundle
    if address is None:
        if imported and system is None and (Path(text) / MODEL).is_file():
            return read_model(Path(text)).folder
        return bundle_folder(Path(text), system)
    if isinstance(address, RegistryAddress):
        pointer = read_pointer(address, resolve_store(), "" if imported else BUNDLE)
        if system not in (None, pointer.system):
            raise InputError(f"--system must be {pointer.system}, as {address} holds it, got {system}")
        return fetch_registered(pointer, check)
    return fetch_model(*_s3_bundle(address, system), check)


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
    return {key: value for key, value in tags.items() if value}


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


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
