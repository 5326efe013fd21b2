"""The completion marker of a stage output: ``_DONE.json`` with one SHA-256 per file.

The digest of an output is the SHA-256 over its sorted ``path SHA-256`` lines. It holds no
time or machine name, so equal content has an equal digest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import IncompleteInputError

__all__ = ["DONE", "Done", "file_sha256", "finish", "require_done"]

DONE = "_DONE.json"


@dataclass(frozen=True)
class Done:
    """The content of ``_DONE.json``: stage and key of a finished output, and the digest of its files."""

    stage: str
    key: str | None
    digest: str
    files: dict[str, str]
    output: str = ""


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def finish(folder: Path, stage: str, key: str | None, output: str = "") -> Done:
    """Write ``_DONE.json`` into ``folder`` and return it; the last act of a stage.

    Args:
        folder: The output.
        stage: Stem of the stage that made it.
        key: System or variant it was made for.
        output: Name of the output port.
    """
    files = {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != DONE
    }
    done = Done(stage, key, _digest(files), files, output)
    origin = {"stage": stage, "key": key, "output": output}
    write_json(folder / DONE, {"format": 1, **origin, "digest": done.digest, "files": files})
    return done


def require_done(folder: Path, name: str, *, digest: str | None = None) -> Done:
    """Check that ``folder`` is a finished output and unchanged since.

    Args:
        folder: The output of an earlier stage.
        name: What the reader calls it, for the message.
        digest: The digest it must have, where the caller was told one.

    Raises:
        IncompleteInputError: Naming the folder, the file and what is wrong.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise IncompleteInputError(
            f"input {name}: {folder} does not exist; run the stage that makes it first"
        )
    if not (folder / DONE).is_file():
        raise IncompleteInputError(f"input {name}: {folder} is unfinished (no {DONE}); run its stage again")
    content = read_json(folder / DONE)
    try:
        done = Done(
            content["stage"],
            content["key"],
            content["digest"],
            dict(content["files"]),
            content.get("output", ""),
        )
    except (KeyError, TypeError, ValueError):
        raise IncompleteInputError(f"input {name}: {folder / DONE} is not a completion record") from None
    for relative, expected in done.files.items():
        path = folder / relative
        if not path.is_file():
            raise IncompleteInputError(f"input {name}: {path} is missing; run its stage again")
        if file_sha256(path) != expected:
            raise IncompleteInputError(
                f"input {name}: {path} changed after its stage finished (SHA-256 differs)"
            )
    if _digest(done.files) != done.digest:
        raise IncompleteInputError(f"input {name}: {folder / DONE} does not match its own digest")
    if digest is not None and digest != done.digest:
        raise IncompleteInputError(f"input {name}: {folder} has digest {done.digest}, expected {digest}")
    return done


def _digest(files: dict[str, str]) -> str:
    lines = "".join(f"{sha}  {name}\n" for name, sha in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
