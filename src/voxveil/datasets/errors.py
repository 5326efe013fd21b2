"""What goes wrong outside: Git, DVC or the store refuses or is away."""

from __future__ import annotations

from voxveil.runtime.errors import VoxveilError

__all__ = ["DataError", "one_line"]

_LONGEST = 300


class DataError(VoxveilError):
    """Git, DVC or the store of datasets refuses or cannot be reached."""

    exit_code = 1


def one_line(text: object) -> str:
    """Return ``text`` as one line of at most 300 characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
