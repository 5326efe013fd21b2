"""SHA256SUMS: the digests of all files of a model folder, in the format of ``sha256sum``."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from voxveil.runtime.atomic import write_text
from voxveil.runtime.done import DONE, file_sha256
from voxveil.runtime.errors import IncompleteInputError

__all__ = ["SUMS", "check_sums", "parse_sums", "write_sums"]

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """Write ``SHA256SUMS`` with the digest of every other file below ``folder``."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_sha256(folder / name)}  {name}\n" for name in files if name not in (SUMS, DONE)]
    write_text(folder / SUMS, "".join(lines))


def parse_sums(text: str, where: str, required: str = "") -> dict[str, str]:
    """Return SHA-256 by file name; names stay inside the folder.

    Args:
        text: Content of ``SHA256SUMS``.
        where: Name of that file in an error.
        required: A file that must be listed, if any.

    Raises:
        IncompleteInputError: A line is not ``SHA256  NAME``, a name leads outside, or ``required`` is absent.
    """
    named = {}
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts or "\\" in name
        if not name or outside or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise IncompleteInputError(f"{where}: not a list of SHA-256 digests: {line[:100]!r}")
        named[name] = digest
    if required and required not in named:
        raise IncompleteInputError(f"{where}: {required} is not listed")
    return named


def check_sums(folder: Path, required: str, what: str, hint: str) -> None:
    """Check that ``folder`` holds exactly the files of its ``SHA256SUMS``, each unchanged.

    Args:
        folder: The model folder.
        required: A file that must be listed.
        what: What the folder should be, for errors, e.g. ``model bundle``.
        hint: What writes such a folder.

    Raises:
        IncompleteInputError: A file is missing, changed or not listed; the first is named.
    """
    path = folder / SUMS
    if not path.is_file():
        raise IncompleteInputError(f"{folder}: not a {what} (no {SUMS}); {hint}")
    named = parse_sums(path.read_text(encoding="utf-8", errors="replace"), str(path), required)
    for name, digest in named.items():
        if not (folder / name).is_file():
            raise IncompleteInputError(f"{folder / name}: missing from the {what}")
        if file_sha256(folder / name) != digest:
            raise IncompleteInputError(
                f"{folder / name}: changed since the {what} was written (SHA-256 differs)"
            )
    present = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    extra = sorted(present - set(named) - {SUMS, DONE})
    if extra:
        raise IncompleteInputError(f"{folder / extra[0]}: not part of the {what} ({SUMS} does not list it)")
