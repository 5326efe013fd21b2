"""Explanation of a parameter from the schema: meaning, type, default, allowed range, present value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from voxveil.config.compose import scalar_text
from voxveil.config.model import Params
from voxveil.runtime.errors import ParamsError

__all__ = ["explanation", "range_text"]

_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def explanation(key: str, content: Mapping[str, Any]) -> str:
    """Return what is known of a section or a knob, a line per fact.

    Args:
        key: Dotted path; empty for the list of sections.
        content: The params file's content, for present values.

    Raises:
        ParamsError: The schema has no such path.
    """
    kind: Any = Params
    rules: Mapping[str, Any] = {}
    default: Any = dataclasses.MISSING
    path: list[str] = []
    for part in key.split(".") if key else []:
        if get_origin(kind) is dict:
            kind, rules = get_args(kind)[1], {}
        else:
            fields = {f.name: f for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
            if part not in fields:
                known = f"; known here: {', '.join(sorted(fields))}" if fields else ""
                raise ParamsError(f"{'.'.join([*path, part])}: unknown parameter{known}")
            kind, rules, default = get_type_hints(kind)[part], fields[part].metadata, fields[part].default
        path.append(part)
    present = _present(content, path)
    if dataclasses.is_dataclass(kind):
        about = "" if kind is Params else (kind.__doc__ or "").partition("\n")[0]
        return "\n".join([*([f"{key}: {about}"] if key else []), *_listing(kind, present)])
    if get_origin(kind) is dict:
        names = ", ".join(present) if isinstance(present, Mapping) and present else "none"
        item = get_args(kind)[1]
        return "\n".join([f"{key}: {rules['doc']}", f"names: {names}; of each:", *_listing(item, {})])
    lines = [f"{key}: {rules['doc']}", f"type: {_KINDS[kind]}", f"default: {scalar_text(default)}"]
    allowed = range_text(rules)
    lines += [f"allowed: {allowed}"] if allowed else []
    return "\n".join([*lines, f"in the file: {'absent' if present is None else scalar_text(present)}"])


def range_text(rules: Mapping[str, Any]) -> str:
    """Return the allowed values of a knob in words; empty where its type alone limits it."""
    if rules.get("one_of"):
        return ", ".join(rules["one_of"])
    words = (("low", "at least"), ("above", "above"), ("high", "at most"))
    return ", ".join(f"{word} {rules[name]:g}" for name, word in words if rules.get(name) is not None)


def _present(content: Any, path: list[str]) -> Any:
    for part in path:
        content = content.get(part) if isinstance(content, Mapping) else None
    return content


def _listing(kind: Any, present: Any) -> list[str]:
    """Return a line for each field of a section: its name, present value and meaning."""
    hints, lines = get_type_hints(kind), []
    for field in dataclasses.fields(kind):
        doc = field.metadata.get("doc") or (hints[field.name].__doc__ or "").partition("\n")[0]
        value = present.get(field.name) if isinstance(present, Mapping) else None
        shown = "" if value is None or isinstance(value, Mapping) else f" = {scalar_text(value)}"
        lines.append(f"  {field.name}{shown}: {doc}")
    return lines
