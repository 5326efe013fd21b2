"""Addresses of models: a folder, an S3 prefix, a DVC repository at a commit, or a registry version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri

__all__ = ["DVCAddress", "Pointer", "RegistryAddress", "parse_address"]

_HEX = re.compile(r"[0-9a-f]{64}\Z")
FORMAT = 1


@dataclass(frozen=True)
class DVCAddress:
    """A folder that DVC tracks, in a Git repository at a commit: ``dvc:REPOSITORY@COMMIT:PATH``."""

    repository: str
    commit: str
    path: str

    @staticmethod
    def parse(text: str) -> DVCAddress:
        """Read ``dvc:REPOSITORY@COMMIT:PATH``.

        Raises:
            InputError: Not of this form.
        """
        found = re.fullmatch(r"dvc:(.+)@([0-9a-f]{40}):([^:]+)", text)
        if found is None:
            raise InputError(f"{text}: must be dvc:REPOSITORY@COMMIT:PATH")
        return DVCAddress(*found.groups())

    def __str__(self) -> str:
        return f"dvc:{self.repository}@{self.commit}:{self.path}"


@dataclass(frozen=True)
class RegistryAddress:
    """``models:/NAME@ALIAS`` or ``models:/NAME/VERSION``."""

    name: str
    alias: str
    version: str

    @staticmethod
    def parse(text: str) -> RegistryAddress:
        """Read it.

        Raises:
            InputError: Not of this form.
        """
        found = re.fullmatch(r"models:/([^/@:]+)(?:@([^/@]+)|/([0-9]+))", text)
        if found is None:
            raise InputError(f"{text}: must be models:/NAME@ALIAS or models:/NAME/VERSION")
        name, alias, version = found.groups()
        return RegistryAddress(name, alias or "", version or "")

    def __str__(self) -> str:
        return f"models:/{self.name}@{self.alias}" if self.alias else f"models:/{self.name}/{self.version}"


@dataclass(frozen=True)
class Pointer:
    """Registry entry of a model: its checksum and the address of its files.

    Attributes:
        system: Name of the system, or the architecture of an imported model.
        digest: SHA-256 of its SHA256SUMS, which names the SHA-256 of every file.
        address: Where the bytes lie.
        size: Their number.
    """

    system: str
    digest: str
    address: S3Uri | DVCAddress
    size: int

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``pointer.json``."""
        return {
            "format": FORMAT,
            "system": self.system,
            "sha256sums": self.digest,
            "address": str(self.address),
            "bytes": self.size,
        }

    @staticmethod
    def from_json(content: object, where: str) -> Pointer:
        """Check and read the content of ``pointer.json``.

        Raises:
            InputError: It is not one.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise InputError(f"{where}: not a pointer of format {FORMAT}")
        kinds = {"system": str, "sha256sums": str, "address": str, "bytes": int}
        for name, kind in kinds.items():
            if not isinstance(content.get(name), kind):
                raise InputError(f"{where}: {name} must be {kind.__name__}, got {content.get(name)!r}")
        digest, address = content["sha256sums"], content["address"]
        if not _HEX.match(digest):
            raise InputError(f"{where}: sha256sums must be 64 hexadecimal digits, got {digest!r}")
        location = S3Uri.parse(address) if address.startswith("s3://") else DVCAddress.parse(address)
        return Pointer(content["system"], digest, location, content["bytes"])


def parse_address(text: str, name: str = "--model") -> S3Uri | RegistryAddress | None:
    """Return the address that an option or parameter names, None for a local path.

    Args:
        text: Its value.
        name: The option or dotted parameter, for errors.

    Raises:
        InputError: It has a scheme, but none that is known, or is malformed.
    """
    if text.startswith("s3://"):
        return S3Uri.parse(text, name=name)
    if text.startswith("models:"):
        return RegistryAddress.parse(text)
    if "://" in text:
        raise InputError(f"{name} {text}: must be a folder, s3://BUCKET/PREFIX or models:/NAME@ALIAS")
    return None
