"""Explanation of parameters from the schema: meaning, type, default, range, value now and its origin."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

from voxveil.config.compose import scalar_text
from voxveil.config.older import RENAMED
from voxveil.config.sections import params_class, refuse_absent
from voxveil.runtime.errors import ParamsError

__all__ = ["explanation", "range_text"]

_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def explanation(key: str, content: Mapping[str, Any], file: str = "params.yaml") -> str:
    """Return what is known of a knob, of a section with its knobs, or of all: a line per fact.

    Args:
        key: Dotted path; empty for every section with every knob.
        content: The params file's content, for present values.
        file: Its name.

    Raises:
        ParamsError: The schema has no such path.
    """
    kind: Any = params_class()
    refuse_absent([key.partition(".")[0]], "its explanation")
    rules: Mapping[str, Any] = {}
    default: Any = dataclasses.MISSING
    path: list[str] = []
    for part in key.split(".") if key else []:
        if get_origin(kind) is dict:
            kind, rules = get_args(kind)[1], {}
        else:
            fields = {f.name: f for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
            if part not in fields:
                raise ParamsError(_unknown(".".join([*path, part]), fields))
            kind, rules, default = get_type_hints(kind)[part], fields[part].metadata, fields[part].default
        path.append(part)
    present = _present(content, path)
    if not _is_knob(kind):
        about = [f"{key}: {_about(kind, rules)}"] if key else []
        return "\n".join([*about, *_listing(kind, present, file)])
    lines = [f"{key}: {rules['doc']}", f"type: {_KINDS[kind]}", f"default: {scalar_text(default)}"]
    allowed = range_text(rules)
    lines += [f"allowed: {allowed}"] if allowed else []
    return "\n".join([*lines, f"now: {_value(present, default, file)}"])


def range_text(rules: Mapping[str, Any]) -> str:
    """Return the allowed values of a knob in words; empty where its type alone limits it."""
    if rules.get("one_of"):
        return ", ".join(rules["one_of"])
    if rules.get("some_of"):
        return "some, by commas, of " + ", ".join(rules["some_of"])
    words = (("low", "at least"), ("above", "above"), ("high", "at most"))
    return ", ".join(f"{word} {rules[name]:g}" for name, word in words if rules.get(name) is not None)


def _unknown(path: str, known: Mapping[str, Any]) -> str:
    if path in RENAMED:
        return f"{path}: is now {RENAMED[path]}"
    return f"{path}: unknown parameter" + (f"; known here: {', '.join(sorted(known))}" if known else "")


def _present(content: Any, path: list[str]) -> Any:
    for part in path:
        content = content.get(part) if isinstance(content, Mapping) else None
    return content


def _is_knob(kind: Any) -> bool:
    return not dataclasses.is_dataclass(kind) and get_origin(kind) is not dict


def _about(kind: Any, rules: Mapping[str, Any]) -> str:
    """Return the meaning of a section or a table."""
    return rules.get("doc") or (kind.__doc__ or "").partition("\n")[0]


def _value(present: Any, default: Any, file: str) -> str:
    """Return the value that a knob has now, and where it comes from."""
    if present is None:
        return f"{scalar_text(default)} (the default; not in {file})"
    return f"{scalar_text(present)} (from {file})"


def _values(kind: Any, section: Mapping[str, Any], file: str) -> str:
    """Return the values of one name in a table, by where they come from."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    given = [f"{knob} {scalar_text(section[knob])}" for knob in defaults if knob in section]
    left_out = [f"{knob} {scalar_text(value)}" for knob, value in defaults.items() if knob not in section]
    parts = ((f"from {file}", given), ("default", left_out))
    return "; ".join(f"{origin}: {', '.join(values)}" for origin, values in parts if values)


def _listing(kind: Any, present: Any, file: str) -> Iterator[str]:
    """Yield the lines of what a section or a table holds: name, value now, its origin and the meaning."""
    values = present if isinstance(present, Mapping) else {}
    if get_origin(kind) is dict:
        item = get_args(kind)[1]
        for field in dataclasses.fields(item):
            yield f"  NAME.{field.name} (default {scalar_text(field.default)}): {field.metadata['doc']}"
        for name, section in values.items():
            yield f"  {name}: {_values(item, section if isinstance(section, Mapping) else {}, file)}"
        return
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint, value = hints[field.name], values.get(field.name)
        if not _is_knob(hint):
            yield f"  {field.name}: {_about(hint, field.metadata)}"
            yield from (f"  {line}" for line in _listing(hint, value, file))
        else:
            default = scalar_text(field.default)
            shown, origin = (
                (default, "default")
                if value is None
                else (
                    scalar_text(value),
                    f"{file}, default {default}",
                )
            )
            yield f"  {field.name} = {shown} ({origin}): {field.metadata['doc']}"
