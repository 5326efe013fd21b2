"""Read ``SHA256SUMS`` of a bundle before its files are there."""

from __future__ import annotations

from pathlib import PurePosixPath

from voxveil.errors import InputError

__all__ = ["parse_sums"]


def parse_sums(text: str, where: str) -> dict[str, str]:
    """Return SHA-256 by file name; names stay inside the bundle.

    Raises:
        InputError: A line is not ``SHA256  NAME``, or a name leads outside.
    """
    named = {}
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts or "\\" in name
        if not name or outside or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise InputError(f"{where}: not a list of SHA-256 digests: {line[:100]!r}")
        named[name] = digest
    if "bundle.json" not in named:
        raise InputError(f"{where}: bundle.json is not listed")
    return named
