"""Migration of a params.yaml that an older version wrote: values are kept, and what is new is added."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from voxveil.config.compose import compose, params_text, to_mapping
from voxveil.config.load import parse_params, read_mapping
from voxveil.config.older import RENAMED, matches, renamed_content
from voxveil.config.sections import params_class, refuse_absent
from voxveil.runtime.atomic import write_text

__all__ = ["backup", "difference", "upgraded_text"]

#: The first line of an upgraded file names this command.
_COMMAND = "voxveil params upgrade"


def upgraded_text(path: Path, renamed: Mapping[str, str | None] = RENAMED) -> str:
    """Return the text of a params file in the form of this version.

    What the file lacks and this version needs gets the value of the overlay that the file was composed from
    (``base.scale``), where that overlay lies in ``params/`` beside the file, and the default of the schema
    otherwise. A file that lacks nothing is returned as it is.

    Args:
        path: The file.
        renamed: Present path (or None) by older path.

    Raises:
        ParamsError: A key is unknown and in no table of renames, or a value is not allowed.
    """
    content = read_mapping(path)
    moved = renamed_content(content, renamed)
    # Versions with variants inside their trainings wrote every knob: one that such a file lacks came later.
    # Since then a knob that is left out has its default, so only sections and needed keys are filled in.
    whole = bool(matches(content, ["*", "variants"]))
    filled = _filled(moved, _defaults(path, moved), params_class(), whole=whole)
    params = parse_params(filled)
    if moved == content == filled:
        return path.read_text(encoding="utf-8")
    refuse_absent(content, f"an upgrade of {path}, which writes every section anew,")
    return params_text(params, command=_COMMAND)


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
    """Return the values of the overlay that a file names, or those of the schema."""
    base = content.get("base")
    scale = base.get("scale") if isinstance(base, Mapping) else None
    overlay = path.parent / "params" / f"{scale}.yaml"
    values: dict[str, Any] = to_mapping(compose(overlay) if overlay.is_file() else params_class()())
    return values


def _filled(
    content: Mapping[str, Any], below: Mapping[str, Any], kind: Any, *, whole: bool
) -> dict[str, Any]:
    """Return ``content`` with keys of ``below`` that it lacks: sections and what dvc.yaml needs, or all.

    No system and no variant is added: one that a file lacks was removed on purpose.

    Args:
        content: Values of the file.
        below: Complete values.
        kind: The class that both are of.
        whole: Add every knob.
    """
    filled, hints = dict(content), get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name, hint = field.name, hints[field.name]
        if name not in content:
            if whole or kind is params_class() or field.metadata.get("written") == "always":
                filled[name] = below[name]
        elif not isinstance(content[name], Mapping):
            continue
        elif get_origin(hint) is dict:
            item = get_args(hint)[1]
            filled[name] = {
                key: _filled(value, below[name].get(key, to_mapping(item())), item, whole=whole)
                if isinstance(value, Mapping)
                else value
                for key, value in content[name].items()
            }
        elif dataclasses.is_dataclass(hint):
            filled[name] = _filled(content[name], below[name], hint, whole=whole)
    return filled
