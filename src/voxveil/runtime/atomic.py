"""Atomic writes of files and folders.

A reader sees the old content or the new, never a part: everything is written beside its
destination, flushed, and renamed. A process killed at any moment leaves at most a
``.NAME.partial`` sibling, which the next run removes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voxveil.runtime.errors import InputError

__all__ = [
    "dump_json",
    "file_lock",
    "read_description",
    "read_json",
    "whole_directory",
    "write_bytes",
    "write_json",
    "write_text",
]


def dump_json(value: Any) -> str:
    """Return ``value`` as JSON that is the same for equal values (sorted keys, no NaN)."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write ``data`` to ``path`` atomically, making parent folders.

    Args:
        path: Where to.
        data: All of it.
        private: Readable and writable by its owner only, from the first byte on.

    Raises:
        InputError: The destination exists and is no plain file; a device would be replaced by one.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path}: cannot be written, it is {'a folder' if path.is_dir() else 'no plain file'}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb", opener=_owner_only if private else None) as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    except OSError as error:
        # A write that finds no space left names no file by itself.
        error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def _owner_only(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write ``text`` as UTF-8 to ``path`` atomically."""
    write_bytes(path, text.encode(), private=private)


def write_json(path: Path, value: Any, *, private: bool = False) -> None:
    """Write ``value`` as JSON to ``path`` atomically; NaN and infinity are refused."""
    write_text(path, dump_json(value), private=private)


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or broken one is an :class:`InputError` that names it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path}: not valid JSON ({reason})") from None


def read_description(path: Path, what: str, *kinds: str) -> dict[str, Any]:
    """Read the ``model.json`` of a model.

    Args:
        path: The file.
        what: The model in words, for the error.
        *kinds: What its ``kind`` may be.

    Raises:
        InputError: The file is missing, or describes another kind of model, or one of another format.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != 1 or content.get("kind") not in kinds:
        raise InputError(f"{path}: not a {what} of format 1")
    return content


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the operating system's lock on a file, made if missing; waits for other holders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``path`` when the block ends without an error.

    Args:
        path: The destination. An old one is replaced only after the new one is complete.

    Raises:
        InputError: Another process is writing the same destination.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    lock = path.with_name(f".{path.name}.lock.partial")
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{path}: another process is writing this output; wait for it to end") from None
        old = _old(path)
        # A run killed between the two renames of a replacement leaves the old output under this name.
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            _sync(partial)
            _replace(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            lock.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old.partial")


def _replace(partial: Path, path: Path) -> None:
    if path.is_symlink() or path.is_file():
        # What a link points to stays as it is.
        path.unlink()
    if path.is_dir():
        # A folder cannot be exchanged in one step; _DONE.json goes first, so a reader in
        # between sees an unfinished output, never a mixture.
        old = _old(path)
        path.replace(old)
        partial.replace(path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.replace(path)
