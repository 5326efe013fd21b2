"""Keys of params files that older versions wrote: where each is today, and a file's content brought there."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from voxveil.runtime.errors import ParamsError

__all__ = ["RENAMED", "matches", "renamed_content"]

#: Dotted paths of older versions, each with its present path, or with None where the key was dropped.
#: A ``*`` stands for any name of a system or variant; the present path has its stars in the same order.
RENAMED: Mapping[str, str | None] = {
    "train_pitch.variants": "pitch_variants",
    "train_content.variants": "content_variants",
}


def renamed_content(
    content: Mapping[str, Any], renamed: Mapping[str, str | None] = RENAMED
) -> dict[str, Any]:
    """Return a params file's content with every key of an older version at its present path.

    Args:
        content: Sections by name.
        renamed: Present path (or None) by older path.

    Raises:
        ParamsError: The present path is in the content too, or is no mapping there.
    """
    result: dict[str, Any] = copy.deepcopy(dict(content))
    for old, new in renamed.items():
        for keys, names in matches(result, old.split(".")):
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


def matches(content: Any, parts: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the paths in the content that match a pattern, each with what its stars stand for."""
    if not parts:
        return [([], [])]
    if not isinstance(content, Mapping):
        return []
    star = parts[0] == "*"
    found = []
    for key in list(content) if star else [key for key in content if key == parts[0]]:
        for keys, names in matches(content[key], parts[1:]):
            found.append(([key, *keys], [key, *names] if star else names))
    return found


def _section(content: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    section = content
    for key in keys:
        section = section.setdefault(key, {})
        if not isinstance(section, dict):
            raise ParamsError(f"{'.'.join(keys)}: must be a mapping, got {section!r}")
    return section
