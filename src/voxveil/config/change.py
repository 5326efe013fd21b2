"""Change of single values in the text of params.yaml, with everything else kept as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from voxveil.config.compose import scalar_text, to_mapping, with_change
from voxveil.config.load import parse_params, read_mapping
from voxveil.runtime.errors import ParamsError

__all__ = ["changed_text"]


def changed_text(path: Path, changes: Mapping[str, str]) -> str:
    """Return the text of a params file with some values replaced or added, checked as a whole.

    Comments, order and layout of the file stay. A key that the schema has and the file lacks is added at the
    top of its section; a whole section, system or variant is not.

    Args:
        path: The file.
        changes: Text values by dotted path, read as YAML.

    Raises:
        ParamsError: A path or a value is not allowed.
    """
    content = read_mapping(path)
    for key, value in changes.items():
        content = with_change(content, key, value)
    complete = to_mapping(parse_params(content))
    text = path.read_text(encoding="utf-8")
    for key in changes:
        value = complete
        for part in key.split("."):
            value = value[part]
        if isinstance(value, Mapping):
            raise ParamsError(f"{key}: is a section; give one of its values, e.g. {key}.NAME=VALUE")
        text = _replaced(text, key.split("."), scalar_text(value))
    if to_mapping(parse_params(yaml.safe_load(text))) != complete:
        raise ParamsError(f"{path}: cannot be changed in place, its layout is unusual; edit it by hand")
    return text


def _replaced(text: str, keys: list[str], value: str) -> str:
    node: Any = yaml.compose(text, yaml.SafeLoader)
    for depth, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            raise ParamsError(f"{'.'.join(keys[:depth])}: is no section in the file")
        found: Any = next((inner for name, inner in node.value if name.value == key), None)
        if found is None:
            if depth < len(keys) - 1:
                raise ParamsError(
                    f"{'.'.join(keys[: depth + 1])}: is not in the file; add it by hand, or"
                    " 'voxveil params upgrade' adds what is new"
                )
            return _added(text, node, key, value)
        node = found
    return text[: node.start_mark.index] + value + text[node.end_mark.index :]


def _added(text: str, node: yaml.MappingNode, key: str, value: str) -> str:
    """Insert a key as the first one of its mapping."""
    start = node.start_mark.index
    if node.flow_style:
        return f"{text[: start + 1]}{key}: {value}{', ' if node.value else ''}{text[start + 1 :]}"
    return f"{text[:start]}{key}: {value}\n{' ' * node.start_mark.column}{text[start:]}"
