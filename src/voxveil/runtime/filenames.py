"""Detection and printable form of file names that are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["NOT_UTF8", "printable", "utf8_name"]

#: Why such a name is refused: a record in JSON cannot hold it.
NOT_UTF8 = "refused, its path is not UTF-8; rename it"


def utf8_name(path: Path) -> str | None:
    """Return ``path`` with ``/`` between its parts, or None where its bytes are not UTF-8.

    The bytes decide, not the locale: under ``LC_ALL=C`` a name is the same as elsewhere.
    """
    try:
        return os.fsencode(path.as_posix()).decode("utf-8")
    except UnicodeError:
        return None


def printable(path: Path) -> str:
    r"""Return ``path`` with every byte that is not UTF-8 as ``\xNN``."""
    try:
        return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return path.as_posix().encode("ascii", "backslashreplace").decode("ascii")
