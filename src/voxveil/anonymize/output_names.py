"""Random names for outputs, and the private folder beside them that says which is which.

``OUT`` then holds speech alone, under names that say nothing. ``OUT.private``, beside it and never
inside, holds ``names.json`` (recording -> output) and the ledgers; it is readable by its owner only.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError

__all__ = ["RandomNames", "private_folder", "were_random"]

FORMAT = 1
MAP = "names.json"
_NAME = re.compile(r"[0-9a-f]{32}\.flac\Z")


def private_folder(output: Path) -> Path:
    """Return the private folder of an output folder: beside it, ``OUT.private``.

    Raises:
        InputError: OUT is the root of the file system, so it can have no sibling folder.
    """
    folder = Path(output).resolve()
    if not folder.name:
        raise InputError(f"{output}: --names random needs a folder with a place beside it")
    return folder.with_name(f"{folder.name}.private")


def were_random(output: Path) -> bool:
    """Return whether earlier runs gave random names in ``output``."""
    return bool(Path(output).resolve().name) and (private_folder(output) / MAP).exists()


@dataclass
class RandomNames:
    """The names of one output folder; use :meth:`open`.

    Attributes:
        folder: The private folder.
        known: Output name by recording, as they stand in the map and as they were given since.
    """

    folder: Path
    known: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def open(output: Path) -> RandomNames:
        """Read the names that earlier runs gave in ``output``.

        Raises:
            InputError: ``output`` holds outputs under their own names, or the private folder is not
                one, or its map is damaged: going on would lose what is which.
        """
        output = Path(output)
        if any(output.glob("ledger*.json")):
            raise InputError(
                f"{output}: holds outputs under their own names (ledger.json);"
                " choose another folder for --names random"
            )
        names = RandomNames(private_folder(output))
        path = names.folder / MAP
        if not path.exists():
            if names.folder.exists() and (not names.folder.is_dir() or any(names.folder.iterdir())):
                raise InputError(f"{names.folder}: exists without {MAP}; --names random needs this place")
            return names
        names.known = _read(path)
        return names

    def of(self, recording: str) -> str:
        """Return the output name of a recording; one it was given before stays."""
        if recording not in self.known:
            taken = set(self.known.values())
            while (name := f"{secrets.token_hex(16)}.flac") in taken:
                pass
            self.known[recording] = name
        return self.known[recording]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the private folder while the block runs.

        Raises:
            InputError: Another run is writing there, or wrote there since the names were read.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.folder}: another run is writing there; wait for it to end") from None
            path = self.folder / MAP
            stored = _read(path) if path.exists() else {}
            if any(self.known.get(recording) != name for recording, name in stored.items()):
                raise InputError(f"{path}: changed while recordings were read; start again")
            yield
        finally:
            os.close(handle)

    def save(self, recordings: Iterable[str]) -> None:
        """Write the names of ``recordings`` into the map, beside those it has; durable on return."""
        path = self.folder / MAP
        kept = _read(path) if path.exists() else {}
        kept |= {recording: self.known[recording] for recording in recordings}
        write_json(path, {"format": FORMAT, "names": kept}, private=True)


def _read(path: Path) -> dict[str, str]:
    content = read_json(path)
    names = content.get("names") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if (
        not isinstance(names, dict)
        or not all(isinstance(name, str) and _NAME.match(name) for name in names.values())
        or len(set(names.values())) != len(names)
    ):
        raise InputError(f"{path}: not a map of names of format {FORMAT}; was it edited?")
    return names
