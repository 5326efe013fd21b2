"""Migration of a params.yaml that an older version wrote: values are kept, missing keys are added."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.config.compose import NAMED, compose, params_text, to_mapping
from voxveil.config.load import parse_params, read_mapping
from voxveil.runtime.atomic import write_text
from voxveil.runtime.errors import ParamsError

__all__ = ["RENAMED", "added_paths", "backup", "difference", "upgraded_text"]

#: Dotted paths of older versions, each with its present path, or with None where the key was dropped.
#: A ``*`` stands for any name of a system or variant; the present path has its stars in the same order.
RENAMED: Mapping[str, str | None] = {}


def upgraded_text(path: Path, renamed: Mapping[str, str | None] = RENAMED) -> str:
    """Return the text of a params file with every parameter of this version.

    A missing key gets the value of the overlay that the file was composed from (``base.scale``), where that
    overlay lies in ``params/`` beside the file, and the default of the schema otherwise. A file that lacks
    nothing is returned as it is.

    Args:
        path: The file.
        renamed: Present path (or None) by older path.

    Raises:
        ParamsError: A key is unknown and in no table of renames, or a value is not allowed.
    """
    content = read_mapping(path)
    moved = _moved(content, renamed)
    below = _defaults(path, moved)
    filled = _filled(below, moved)
    params = parse_params(filled)
    complete = to_mapping(params)
    if moved == content and not added_paths(content, complete):
        return path.read_text(encoding="utf-8")
    return params_text(params)


def added_paths(old: Mapping[str, Any], new: Mapping[str, Any], above: str = "") -> list[str]:
    """Return the dotted paths of ``new`` that ``old`` lacks; of a missing section, its own path only."""
    found = []
    for key, value in new.items():
        path = f"{above}.{key}" if above else str(key)
        if key not in old:
            found.append(path)
        elif isinstance(value, Mapping) and isinstance(old[key], Mapping):
            found += added_paths(old[key], value, path)
    return found


def difference(path: Path, text: str) -> str:
    """Return the unified diff from a file to its new text."""
    old = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), text.splitlines(keepends=True), str(path), f"{path} (upgraded)", n=1
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def backup(path: Path) -> Path:
    """Copy a file to ``NAME.bak``, or to ``NAME.bak.2`` and so on where that exists; return the copy."""
    copied, number = path.with_name(f"{path.name}.bak"), 1
    while copied.exists() or copied.is_symlink():
        number += 1
        copied = path.with_name(f"{path.name}.bak.{number}")
    write_text(copied, path.read_text(encoding="utf-8"))
    return copied


def _defaults(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    base = content.get("base")
    scale = base.get("scale") if isinstance(base, Mapping) else None
    overlay = path.parent / "params" / f"{scale}.yaml"
    known: dict[str, Any] = to_mapping(compose(overlay)) if overlay.is_file() else {}
    return known


def _filled(below: Mapping[str, Any], content: Mapping[str, Any], *, named: bool = False) -> dict[str, Any]:
    """Return ``content`` with the keys of ``below`` that it lacks, but with no further system or variant."""
    filled = dict(content)
    for key, value in below.items():
        if key not in content:
            # A name that a file lacks was removed on purpose.
            if not named:
                filled[key] = value
        elif isinstance(value, Mapping) and isinstance(content[key], Mapping):
            filled[key] = _filled(value, content[key], named=key in NAMED)
    return filled


def _moved(content: Mapping[str, Any], renamed: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the content with every key of an older version at its present path."""
    result: dict[str, Any] = copy.deepcopy(dict(content))
    for old, new in renamed.items():
        for keys, names in _matches(result, old.split(".")):
            *sections, last = keys
            value = _section(result, sections).pop(last)
            if new is None:
                continue
            stars = iter(names)
            present = [next(stars) if part == "*" else part for part in new.split(".")]
            *sections, last = present
            target = _section(result, sections)
            if last in target:
                raise ParamsError(
                    f"{'.'.join(keys)}: is now {'.'.join(present)}, which is there too; remove one"
                )
            target[last] = value
    return result


def _section(content: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    section = content
    for key in keys:
        section = section.setdefault(key, {})
        if not isinstance(section, dict):
            raise ParamsError(f"{'.'.join(keys)}: must be a mapping, got {section!r}")
    return section


def _matches(content: Any, parts: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the paths in the content that match a pattern, each with what its stars stand for."""
    if not parts:
        return [([], [])]
    if not isinstance(content, Mapping):
        return []
    star = parts[0] == "*"
    found = []
    for key in list(content) if star else [key for key in content if key == parts[0]]:
        for keys, names in _matches(content[key], parts[1:]):
            found.append(([key, *keys], [key, *names] if star else names))
    return found
