"""Change of single values in the text of params.yaml, with everything else kept as it stands."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from voxveil.config.compose import scalar_text, to_mapping, with_change
from voxveil.config.load import parse_params, read_mapping
from voxveil.config.sections import params_class, refuse_absent
from voxveil.runtime.errors import ParamsError

__all__ = ["changed_text"]


def changed_text(path: Path, changes: Mapping[str, str]) -> str:
    """Return the text of a params file with some values replaced or added, checked as a whole.

    Comments, order and layout of the file stay. A knob that the schema has and the file lacks is added at the
    top of its section; a whole section, system or variant is not.

    Args:
        path: The file.
        changes: Text values by dotted path, read as YAML.

    Raises:
        ParamsError: A path or a value is not allowed.
    """
    content = read_mapping(path)
    refuse_absent((key.partition(".")[0] for key in changes), "a change of it")
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
        text = _replaced(text, key.split("."), value)
    try:
        result = to_mapping(parse_params(yaml.safe_load(text)))
    except (yaml.YAMLError, ParamsError):
        result = {}
    if result != complete:
        raise ParamsError(f"{path}: cannot be changed in place, its layout is unusual; edit it by hand")
    return text


def _replaced(text: str, keys: list[str], value: Any) -> str:
    """Return a YAML text with one value replaced, or added to its section."""
    node: Any = yaml.compose(text, yaml.SafeLoader)
    flow = False
    for depth, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            raise ParamsError(f"{'.'.join(keys[:depth])}: is no section in the file")
        flow = flow or bool(node.flow_style)
        found: Any = next((inner for name, inner in node.value if name.value == key), None)
        if found is None:
            if depth < len(keys) - 1:
                raise ParamsError(
                    f"{'.'.join(keys[: depth + 1])}: is not in the file; add it by hand, or"
                    " 'voxveil params upgrade' adds what is new"
                )
            return _added(text, node, keys, value)
        node = found
    return text[: node.start_mark.index] + _text(value, flow) + text[node.end_mark.index :]


def _added(text: str, node: yaml.MappingNode, keys: list[str], value: Any) -> str:
    """Insert a knob into its section, with its meaning where it gets a line of its own."""
    start = node.start_mark.index
    if node.flow_style and node.value:
        end = node.value[-1][1].end_mark.index
        return f"{text[:end]}, {keys[-1]}: {_text(value, True)}{text[end:]}"
    if node.flow_style and len(keys) > 2:
        return f"{text[: start + 1]}{keys[-1]}: {_text(value, True)}{text[start + 1 :]}"
    line = f"{keys[-1]}: {_text(value, False)}{_meaning(keys)}"
    if node.flow_style:
        # The section is the empty mapping, {}.
        return f"{text[:start].rstrip(' ')}\n  {line}{text[node.end_mark.index :]}"
    return f"{text[:start]}{line}\n{' ' * node.start_mark.column}{text[start:]}"


def _meaning(keys: list[str]) -> str:
    """Return a comment that explains a knob of a section."""
    if len(keys) != 2:
        return ""
    section = getattr(params_class()(), keys[0])
    docs = {knob.name: knob.metadata["doc"] for knob in dataclasses.fields(section)}
    return f"  # {docs[keys[1]]}"


def _text(value: Any, flow: bool) -> str:
    """Return a value as YAML; within braces, text is quoted so that a comma in it separates nothing."""
    quoted = flow and isinstance(value, str) and bool(set(value) & set(",[]{}"))
    return json.dumps(value, ensure_ascii=False) if quoted else scalar_text(value)
