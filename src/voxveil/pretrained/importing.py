"""Import of a pretrained model into one folder, converted once, with licence, source and digests."""

from __future__ import annotations

import fnmatch
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from voxveil.pretrained.architectures import architecture
from voxveil.pretrained.folder import PretrainedModel, read_model, write_model
from voxveil.pretrained.sources import Source, find_source
from voxveil.runtime.atomic import whole_directory
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError

__all__ = ["import_model", "read_checkpoint", "read_tensors", "single_file"]

_PART = re.compile(r"(.+)\.part(\d+)\Z")


def import_model(
    sources: Sequence[str],
    name: str,
    folder: Path,
    *,
    licence: str = "",
    digests: Mapping[str, str] | None = None,
) -> PretrainedModel:
    """Convert the files of a model and return the finished folder's description.

    Args:
        sources: Where the files are, see :func:`voxveil.pretrained.sources.find_source`; several are read as
            one folder, and a file that is split into ``NAME.part1``, ``NAME.part2``, ... is joined.
        name: The architecture.
        folder: The folder to write, whole or not at all.
        licence: Licence of the weights where the source states none or another one.
        digests: Expected SHA-256 of original files by name.

    Raises:
        InputError: A source is absent, a file is missing or differs from its digest, holds Python objects
            instead of tensors, or does not fit the architecture; or no licence is known.
    """
    entry = architecture(name)
    found = [find_source(text, entry.files) for text in sources]
    licence = licence or next((source.licence for source in found if source.licence), "")
    if not licence:
        raise InputError(f"{sources[0]}: states no licence; name that of the weights with --licence")
    files = _matching(found, entry.files)
    if not files:
        raise InputError(f"{', '.join(sources)}: holds no {' or '.join(entry.files)}, which {name} needs")
    origin = {file: file_sha256(path) for file, path in files.items()}
    for file, digest in (digests or {}).items():
        if origin.get(file) != digest:
            got = origin.get(file, "no such file")
            raise InputError(f"{file}: SHA-256 is {got}, must be {digest}")
    module: Any = import_module(f"voxveil.pretrained.{entry.module}")
    with whole_directory(folder) as partial:
        joined = _joined(files, partial)
        settings = module.convert(joined, partial, name)
        for path in partial.glob(".joined-*"):
            path.unlink()
        model = PretrainedModel(
            folder=partial,
            architecture=name,
            kind=entry.kind,
            licence=licence,
            source="; ".join(source.address for source in found),
            sample_rate=int(settings.pop("sample_rate", 16000)),
            settings=settings,
            origin=origin,
        )
        write_model(partial, model)
        # A model that its own loader refuses is never left behind.
        module.load(read_model(partial))
    return read_model(folder)


def _matching(sources: Sequence[Source], patterns: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for source in sources:
        for path in sorted(source.folder.iterdir()):
            if path.is_file() and any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns):
                if path.name in files:
                    raise InputError(f"{path}: a file of this name is also in {files[path.name].parent}")
                files[path.name] = path
    return files


def _joined(files: Mapping[str, Path], scratch: Path) -> dict[str, Path]:
    """Return the files with split ones joined, as hidden files of ``scratch``."""
    joined = {name: path for name, path in files.items() if not _PART.match(name)}
    parts: dict[str, list[tuple[int, Path]]] = {}
    for name, path in files.items():
        if found := _PART.match(name):
            parts.setdefault(found[1], []).append((int(found[2]), path))
    for name, pieces in parts.items():
        numbers = sorted(number for number, _ in pieces)
        if numbers != list(range(1, len(numbers) + 1)):
            raise InputError(f"{name}: its parts are {numbers}, must be 1 to {numbers[-1]} without a gap")
        target = scratch / f".joined-{name}"
        with target.open("wb") as out:
            for _, path in sorted(pieces):
                with path.open("rb") as handle:
                    shutil.copyfileobj(handle, out)
        joined[name] = target
    return joined


def single_file(files: Mapping[str, Path]) -> Path:
    """Return the only file of an import.

    Raises:
        InputError: There are several.
    """
    if len(files) != 1:
        raise InputError(f"several networks: {', '.join(files)}; must be one (import from a folder with one)")
    (path,) = files.values()
    return path


def read_checkpoint(path: Path) -> Any:
    """Return the content of a ``.safetensors`` file or of a torch checkpoint without Python objects.

    Raises:
        InputError: The file is unreadable, or is a pickle with anything but tensors and plain values.
    """
    import pickle

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(
            f"{path}: holds Python objects; only tensors are read, because a pickle can run code"
        ) from None
    except (SafetensorError, RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        raise InputError(f"{path}: not readable weights ({type(error).__name__})") from None


def read_tensors(path: Path) -> dict[str, Any]:
    """Return the tensors of a ``.safetensors`` file or of a torch checkpoint without Python objects.

    Raises:
        InputError: The file is unreadable, or holds anything but named tensors.
    """
    import torch

    content = read_checkpoint(path)
    # Training programs often store the weights beside other state under one of these names.
    for key in ("state_dict", "model", "generator"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise InputError(f"{path}: must be a mapping of names to tensors")
    return dict(content)
