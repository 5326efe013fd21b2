"""Stamp of a result's inputs; if unchanged, the result is reused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import DONE

__all__ = ["content_digest", "has_stamp", "write_stamp"]

_STAMP = "made_from.json"


def content_digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value, 64 hex digits, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_stamp(folder: Path, inputs: Mapping[str, Any]) -> None:
    """Write the stamp of a result's inputs into its unfinished folder."""
    write_json(folder / _STAMP, inputs)


def has_stamp(folder: Path, inputs: Mapping[str, Any]) -> bool:
    """Return whether a folder is finished and its stamp equals these inputs."""
    if not (folder / DONE).is_file() or not (folder / _STAMP).is_file():
        return False
    return bool(read_json(folder / _STAMP) == json.loads(json.dumps(inputs)))
