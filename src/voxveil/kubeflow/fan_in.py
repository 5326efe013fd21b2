"""Fan-in of several tasks' outputs through a list parameter of ``SYSTEM URI DIGEST`` texts.

Kubeflow cannot hand the artifacts of an unrolled set of tasks to one task as one input, nor those of a loop
inside another group, and backends limit how many inputs a task may have. A list of texts has no such limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voxveil.kubeflow.store import check_reachable, fetch
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["collect", "collect_shares", "fetch_one", "location", "read_locations"]

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def location(system: str, uri: str, digest: str) -> str:
    """Return the ``SYSTEM URI DIGEST`` text of an output."""
    return f"{system} {uri} {digest}"


def collect(entries: Any, folder: Path, name: str, systems: Sequence[str]) -> None:
    """Fetch every system's output into ``folder/SYSTEM`` and verify it.

    Args:
        entries: ``SYSTEM URI DIGEST`` texts, one per system.
        folder: Where to put them.
        name: Name of the input, for messages.
        systems: The systems that must be there, no more and no fewer.

    Raises:
        InputError: An entry is malformed, twice or missing, or what lies there differs from its digest.
        ParamsError: The systems of the compiled pipeline are not those of the parameters.
    """
    found: dict[str, tuple[str, str]] = {}
    for system, uri, digest in read_locations(entries, name):
        if system in found:
            raise InputError(f"input {name}: system {system} is given twice")
        found[system] = (uri, digest)
    if set(found) != set(systems):
        raise ParamsError(
            f"input {name}: the pipeline was compiled for systems {', '.join(sorted(found)) or 'none'},"
            f" params have {', '.join(sorted(systems)) or 'none'}; compile it again with these params"
        )
    for uri, _ in found.values():
        check_reachable(uri)
    for system, (uri, digest) in sorted(found.items()):
        fetch(uri, folder / system)
        require_done(folder / system, f"{name} of {system} ({uri})", digest=digest)


def collect_shares(entries: Any, folder: Path, name: str, system: str) -> None:
    """Fetch every share of some work into ``folder/0``, ``folder/1``, ... and verify it.

    Which share each is, and whether all are there, its content says: the step that gathers them checks it
    (:mod:`voxveil.stages.gathering` for shares of a stage).

    Args:
        entries: ``SYSTEM URI DIGEST`` texts, one per share, in any order.
        folder: Where to put them.
        name: Name of the input, for messages.
        system: The system they must be of; empty where each is of its own system or variant.

    Raises:
        InputError: An entry is malformed or of another system, or what lies there differs from its digest.
    """
    found = read_locations(entries, name)
    for other, uri, _ in found:
        if system and other != system:
            raise InputError(f"input {name}: {uri} is of system {other}, must be of {system}")
        check_reachable(uri)
    folder.mkdir(parents=True)
    for number, (_, uri, digest) in enumerate(found):
        fetch(uri, folder / str(number))
        require_done(folder / str(number), f"{name} ({uri})", digest=digest)


def fetch_one(entry: str, folder: Path, name: str) -> Path:
    """Fetch the output that one ``SYSTEM URI DIGEST`` text names into ``folder``, verify and return it.

    Raises:
        InputError: It is malformed, is not there, or differs from its digest.
    """
    _, uri, digest = _parse(entry, name)
    check_reachable(uri)
    fetch(uri, folder)
    require_done(folder, f"{name} ({uri})", digest=digest)
    return folder


def read_locations(entries: Any, name: str) -> list[tuple[str, str, str]]:
    """Return system, URI and digest of each ``SYSTEM URI DIGEST`` text.

    Raises:
        InputError: It is no list of such texts.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise InputError(f"input {name}: must be a list of 'SYSTEM URI DIGEST' texts, got {entries!r}")
    return [_parse(entry, name) for entry in entries]


def _parse(entry: str, name: str) -> tuple[str, str, str]:
    system, _, rest = entry.partition(" ")
    uri, _, digest = rest.rpartition(" ")
    if not system or not uri or not _DIGEST.match(digest):
        raise InputError(f"input {name}: must be 'SYSTEM URI DIGEST', got {entry!r}")
    return system, uri, digest
