"""Named arrays in one ``.npz`` without objects: equal arrays give equal bytes, nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError

__all__ = ["read_arrays", "write_arrays"]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to ``path`` atomically, in name order.

    Raises:
        TypeError: An array holds Python objects, which could only be pickled.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name} of {path} holds objects; only numbers and text are stored")
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: arrays[name] for name in sorted(arrays)})
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read the arrays called ``names``.

    Raises:
        InputError: The file is missing, broken, holds objects, or lacks one of them.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in names if name in archive}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not a readable .npz ({error})") from None
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputError(f"{path}: holds no array {missing[0]!r}")
    return arrays
