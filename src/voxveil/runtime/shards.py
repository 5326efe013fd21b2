"""Uncompressed tar shards of at most 2,000 items each, written and read.

Members are named ``ITEM.SUFFIX`` and carry no time, owner or mode of their own, so equal
items give equal bytes.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["MAX_ITEMS", "ShardReader", "ShardWriter", "array_bytes", "bytes_array"]

MAX_ITEMS = 2000


def array_bytes(array: NDArray[Any]) -> bytes:
    """Return an array in ``.npy`` form."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def bytes_array(data: bytes) -> NDArray[Any]:
    """Read an array in ``.npy`` form.

    Raises:
        ValueError: The bytes are no such array, or it holds objects.
    """
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except ValueError as error:
        # NumPy's own words for an object array advise to unpickle it.
        raise ValueError("it holds pickled objects" if "allow_pickle" in str(error) else str(error)) from None
    except (
        EOFError,
        SyntaxError,
        TypeError,
        TokenError,
        MemoryError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(f"its header is damaged ({type(error).__name__})") from None
    return array


class ShardWriter:
    """Writes ``STEM-000.tar``, ``STEM-001.tar``... into a folder.

    Args:
        folder: An existing folder.
        stem: E.g. ``audio``.
        suffix: File suffix of each member, e.g. ``flac``.
    """

    def __init__(self, folder: Path, stem: str, suffix: str) -> None:
        self._folder, self._stem, self._suffix = Path(folder), stem, suffix
        self._count = 0
        self._tar: tarfile.TarFile | None = None

    def add(self, item: str, data: bytes, suffix: str = "") -> str:
        """Append one item; return its address ``STEM-000.tar/ITEM.SUFFIX``.

        Args:
            item: Its id.
            data: Its bytes.
            suffix: Of this member, where it differs from the others'.
        """
        if "/" in item or item in {"", ".", ".."}:
            raise InputError(f"item id {item!r} cannot be stored: it must be a plain name without '/'")
        if self._count % MAX_ITEMS == 0:
            self._close()
            self._tar = tarfile.open(self._path(self._count // MAX_ITEMS), "w", format=tarfile.GNU_FORMAT)  # noqa: SIM115
        if self._tar is None:
            raise RuntimeError("shard is closed")
        info = tarfile.TarInfo(f"{item}.{suffix or self._suffix}")
        info.size, info.mode = len(data), 0o644
        self._tar.addfile(info, io.BytesIO(data))
        address = f"{self._path(self._count // MAX_ITEMS).name}/{info.name}"
        self._count += 1
        return address

    def _path(self, index: int) -> Path:
        return self._folder / f"{self._stem}-{index:03d}.tar"

    def _close(self) -> None:
        if self._tar is not None:
            self._tar.close()
            self._tar = None

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


class ShardReader:
    """Random access to the items of ``STEM-*.tar`` in a folder.

    Offsets are read once; each read opens the shard anew, so one reader may be used by
    several threads or forked workers.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = Path(folder), stem
        self._index: dict[str, tuple[Path, int, int]] = {}
        for path in sorted(self._folder.glob(f"{stem}-*.tar")):
            try:
                with tarfile.open(path, "r:") as tar:
                    for member in tar:
                        self._index[Path(member.name).stem] = (path, member.offset_data, member.size)
            except tarfile.TarError as error:
                raise IncompleteInputError(f"{path}: not a readable tar shard ({error})") from None

    def __contains__(self, item: str) -> bool:
        return item in self._index

    def __len__(self) -> int:
        return len(self._index)

    def items(self) -> Iterator[str]:
        """Iterate over item ids in stored order."""
        return iter(self._index)

    def read(self, item: str) -> bytes:
        """Return the bytes of one item; an absent one is an error that names it."""
        try:
            path, offset, size = self._index[item]
        except KeyError:
            raise IncompleteInputError(
                f"utterance {item}: not in {self._folder}/{self._stem}-*.tar;"
                " run the stage that makes it again"
            ) from None
        with path.open("rb") as handle:
            handle.seek(offset)
            return handle.read(size)

    def require(self, items: Iterable[str]) -> None:
        """Check that every item is present before anything is computed."""
        missing = [item for item in items if item not in self._index]
        if missing:
            raise IncompleteInputError(
                f"utterance {missing[0]}: not in {self._folder}/{self._stem}-*.tar"
                f" ({len(missing)} missing in all); run the stage that makes it again"
            )
