"""What a kept result was made from, beside it: the same again is not made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import DONE

__all__ = ["content_digest", "is_made", "write_made"]

_MADE = "made_from.json"


def content_digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value, 64 hex digits, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_made(folder: Path, made: Mapping[str, Any]) -> None:
    """Write into an unfinished folder what it was made from."""
    write_json(folder / _MADE, made)


def is_made(folder: Path, made: Mapping[str, Any]) -> bool:
    """Tell whether a folder is finished and was made from the same."""
    if not (folder / DONE).is_file() or not (folder / _MADE).is_file():
        return False
    return bool(read_json(folder / _MADE) == json.loads(json.dumps(made)))
