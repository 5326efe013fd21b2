"""Compose params.yaml from the defaults and a small overlay: what differs and what is often changed."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from voxveil.config.load import parse_params, read_mapping
from voxveil.config.model import Params
from voxveil.config.older import renamed_content
from voxveil.runtime.atomic import write_text
from voxveil.runtime.errors import ParamsError

__all__ = [
    "NAMED",
    "changes_of",
    "compose",
    "overlay_names",
    "overlay_path",
    "params_text",
    "scalar_text",
    "to_mapping",
    "use_overlay",
    "was_edited",
    "with_change",
]

#: Key of an overlay that names the one it is laid over.
_EXTENDS = "extends"
#: Mappings whose keys a user chooses: an overlay that has one replaces it.
NAMED = ("systems", "pitch_variants", "content_variants")
#: First line of a composed params.yaml: whether ``--set`` was given, and the digest of all lines below.
_WRITTEN = re.compile(r"# Written by 'voxveil params use [\w.-]+.*?'(?: \(digest ([0-9a-f]{12})\))?\. Values")
#: Second line of params.yaml.
_NOTE = "# A knob that is left out has its default: 'voxveil params explain' lists every knob."


def overlay_names(folder: Path) -> list[str]:
    """Return the overlays in ``folder`` (``params/``)."""
    return sorted(path.stem for path in Path(folder).glob("*.yaml"))


def compose(overlay: Path, changes: Mapping[str, str] | None = None) -> Params:
    """Return the checked parameters of an overlay file over the defaults.

    Args:
        overlay: The file; ``extends: NAME`` in it lays it over ``NAME.yaml`` beside it.
        changes: Text values by dotted path that replace those of the overlay, read as YAML.
    """
    content = _read_overlay(Path(overlay))
    base = dict(content.get("base") or {})
    base.setdefault("scale", Path(overlay).stem)
    content["base"] = base
    for path, text in (changes or {}).items():
        _change(content, path, text)
    return parse_params(content)


def _read_overlay(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return an overlay's content over that of the overlay beside it which it extends, if it does."""
    content = read_mapping(path)
    if _EXTENDS not in content:
        return content
    name = content.pop(_EXTENDS)
    known = [each for each in overlay_names(path.parent) if each != path.stem]
    if name not in known:
        raise ParamsError(f"{path}: {_EXTENDS}: got {name!r}, must be one of {', '.join(known)}")
    below = path.with_name(f"{name}.yaml")
    if below in above:
        raise ParamsError(f"{path}: {_EXTENDS}: {name} extends this overlay itself")
    return _over(_read_overlay(below, (*above, path)), content)


def _over(below: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one overlay over another: section by section and knob by knob; what has names of its own, whole."""
    merged = dict(below)
    for key, value in content.items():
        under = merged.get(key)
        if key not in NAMED and isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[key] = _over(under, value)
        else:
            merged[key] = value
    return merged


def use_overlay(
    name: str, root: Path, changes: Mapping[str, str] | None = None, *, force: bool = False
) -> Path:
    """Rewrite ``root/params.yaml`` from ``root/params/NAME.yaml`` and changes; return its path.

    Args:
        name: The overlay.
        root: The project.
        changes: Text values by dotted path, as ``--set`` gives them.
        force: Replace a file that was changed by hand, too.

    Raises:
        ParamsError: The file was changed by hand, and ``force`` is not given.
    """
    overlay = overlay_path(name, root)
    path = root / "params.yaml"
    text = params_text(compose(overlay, changes), name, changes)
    if not force and was_edited(root) and path.read_text(encoding="utf-8") != text:
        raise ParamsError(
            f"{path}: was edited and is kept; 'voxveil params upgrade' adds new parameters to it, and"
            f" 'voxveil params use {name} --force' replaces it"
        )
    write_text(path, text)
    return path


def was_edited(root: Path, *, or_set: bool = False) -> bool:
    """Return whether ``root/params.yaml`` holds work of a person.

    The first line of params.yaml records the command that wrote it and a digest of all lines below. A file
    that still has this digest was composed: it can be composed again with another ``--set``, after a change
    of its overlay, or by another version. A file without a digest counts as edited if its values are those of
    no overlay; its comments do not count, because another version explains knobs in other words.

    Args:
        root: The project.
        or_set: A composed file counts as edited, too, if its values are those of no overlay: they were given
            with ``--set``, or another program composed them.
    """
    path, folder = root / "params.yaml", root / "params"
    if not path.is_file():
        return False
    head, _, body = path.read_text(encoding="utf-8").partition("\n")
    found = _WRITTEN.match(head)
    if found and found[1] and not or_set:
        return found[1] != _digest(body)
    try:
        params = parse_params(renamed_content(read_mapping(path)))
    except ParamsError:
        return True
    return all(compose(folder / f"{name}.yaml") != params for name in overlay_names(folder))


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:12]


def overlay_path(name: str, root: Path) -> Path:
    """Return the overlay ``root/params/NAME.yaml``.

    Raises:
        ParamsError: There is none, naming those there are.
    """
    overlay = root / "params" / f"{name}.yaml"
    if not overlay.is_file():
        known = ", ".join(overlay_names(root / "params")) or "none"
        raise ParamsError(f"no overlay {name!r} in {root / 'params'}; known: {known}")
    return overlay


def changes_of(texts: Iterable[str]) -> dict[str, str]:
    """Return ``PATH=VALUE`` options as values by dotted path.

    Raises:
        ParamsError: One is not of that form.
    """
    changes = {}
    for text in texts:
        path, sign, value = text.partition("=")
        if not sign or not path:
            raise ParamsError(f"--set {text}: must be PATH=VALUE, e.g. prepare.source=/data/LibriSpeech")
        changes[path.strip()] = value
    return changes


def with_change(content: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """Return a copy of a mapping with one value, given as YAML text, at a dotted path."""
    changed = dict(content)
    _change(changed, path, text)
    return changed


def _change(content: dict[str, Any], path: str, text: str) -> None:
    try:
        # No value is the empty text: no knob may be null.
        value = yaml.safe_load(text) if text.strip() else ""
    except yaml.YAMLError:
        raise ParamsError(f"{path}: not a value: {text!r}") from None
    *sections, key = path.split(".")
    target = content
    for section in sections:
        inner = target.get(section)
        target[section] = target = dict(inner) if isinstance(inner, Mapping) else {}
    target[key] = value


def to_mapping(section: Any) -> Any:
    """Return a section as plain nested dictionaries, without registered sections that the file left out."""
    if dataclasses.is_dataclass(section) and not isinstance(section, type):
        values = {field.name: getattr(section, field.name) for field in dataclasses.fields(section)}
        return {name: to_mapping(value) for name, value in values.items() if value is not None}
    if isinstance(section, Mapping):
        return {key: to_mapping(value) for key, value in section.items()}
    return section


def params_text(
    params: Params, name: str = "", changes: Mapping[str, str] | None = None, *, command: str = ""
) -> str:
    """Return the text of params.yaml: every section, and in it the knobs that a person looks for.

    These are the knobs that differ from their default, and those that the schema marks as often changed.
    Equal values give equal text, apart from the first line.

    Args:
        params: The values.
        name: The overlay that the first line names; ``base.scale`` unless given.
        changes: The ``--set`` values that the first line names.
        command: What wrote the values, if that was no composition: such a file has no digest.
    """
    lines = [_NOTE]
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        if value is None:
            continue  # a registered section that the file left out
        table = isinstance(value, Mapping)
        lines += ["", *(_table_lines(field, value) if table else _section_lines(field.name, value))]
    body = "\n".join(lines) + "\n"
    options = [f" --set {shlex.quote(f'{path}={value}')}" for path, value in (changes or {}).items()]
    # A comment is one line, whatever a value holds.
    used = " ".join(f"voxveil params use {name or params.base.scale}{''.join(options)}".split())
    by = f"'{command}'" if command else f"'{used}' (digest {_digest(body)})"
    return f"# Written by {by}. Values are yours; unknown keys are refused.\n{body}"


def _section_lines(name: str, section: Any) -> list[str]:
    """Return the lines of a section: its meaning, its name, and each written knob with its meaning."""
    doc = (type(section).__doc__ or "").partition("\n")[0]
    docs = {field.name: field.metadata["doc"] for field in dataclasses.fields(section)}
    knobs = [f"  {knob}: {scalar_text(value)}  # {docs[knob]}" for knob, value in _written(section).items()]
    return [f"# {doc}", f"{name}:{'' if knobs else ' {}'}", *knobs]


def _table_lines(field: dataclasses.Field[Any], table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table: its meaning, that of each knob in it once, and a line for each name."""
    written = {name: _written(item) for name, item in table.items()}
    used = {knob for knobs in written.values() for knob in knobs}
    item = next(iter(table.values()), None)
    docs = [
        f"#   {knob.name}: {knob.metadata['doc']}"
        for knob in (dataclasses.fields(item) if item is not None else ())
        if knob.name in used
    ]
    rows = []
    for name, knobs in written.items():
        row = ", ".join(f"{knob}: {scalar_text(value)}" for knob, value in knobs.items())
        rows.append(f"  {scalar_text(name)}: {{{row}}}")
    return [f"# {field.metadata['doc']}", *docs, f"{field.name}:{'' if rows else ' {}'}", *rows]


def _written(section: Any) -> dict[str, Any]:
    """Return the knobs of a section that a composed file holds."""
    values = {field: getattr(section, field.name) for field in dataclasses.fields(section)}
    return {
        field.name: value
        for field, value in values.items()
        if value != field.default or field.metadata["written"] != "differs"
    }


def scalar_text(value: Any) -> str:
    """Return a value as params.yaml shows it, so that it is read back equal."""
    if isinstance(value, float):
        # PyYAML reads 1e-05 as text; a float always shows its point.
        text = f"{value:.12g}"
        if float(text) != value:
            text = repr(value)
        if "e" in text:
            mantissa, exponent = text.split("e")
            text = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
        return text if "." in text or "e" in text else f"{text}.0"
    dumped: str = yaml.safe_dump(value, default_flow_style=True)
    return dumped.removesuffix("\n").removesuffix("...").strip()
