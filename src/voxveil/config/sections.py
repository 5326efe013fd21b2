"""Parameter sections that extensions register, beside those of the product.

A registered section is a frozen dataclass of :func:`voxveil.config.fields.knob` fields, named by an entry
point of the group ``voxveil.params``. Its method ``check(path)``, if it has one, checks what concerns several
values and raises a ParamsError with the dotted path. It stands in params.yaml like any other section, but a
file may leave it out as a whole, since somebody without the extension wrote it; only what reads the section
asks for it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

from voxveil.config.model import Params
from voxveil.runtime import extensions
from voxveil.runtime.errors import InputError, MissingExtraError, ParamsError

__all__ = [
    "MISSING",
    "absent_sections",
    "params_class",
    "refuse_absent",
    "registered_names",
    "section_of",
    "with_section",
    "without_absent",
]

_T = TypeVar("_T")

#: What is said of a section or knob that a params file must have.
MISSING = "missing; 'voxveil params upgrade' adds it and keeps your values"


@lru_cache(maxsize=1)
def params_class() -> type[Params]:
    """Return the class of all of params.yaml: the product's sections, then the registered ones.

    Raises:
        InputError: A registered section has the name of one of the product's.
    """
    added: list[tuple[str, type, Any]] = []
    for name, entry in extensions.registered(extensions.PARAMS).items():
        if name in {field.name for field in dataclasses.fields(Params)}:
            raise InputError(
                f"{extensions.PARAMS}: {entry.value} is registered as {name}, a section of voxveil"
            )
        if name not in absent_sections():
            kind = extensions.load(entry)
            added.append((name, kind, dataclasses.field(default_factory=kind)))
    namespace = {"__doc__": "All of params.yaml."}
    return dataclasses.make_dataclass("Params", added, bases=(Params,), namespace=namespace, frozen=True)


def registered_names() -> set[str]:
    """Return the names of the registered sections that are installed."""
    return extensions.registered(extensions.PARAMS).keys() - absent_sections().keys()


@lru_cache(maxsize=1)
def absent_sections() -> Mapping[str, str]:
    """Return the registered sections whose extension is not installed, each with its extra."""
    absent = {}
    for name, entry in extensions.registered(extensions.PARAMS).items():
        try:
            extensions.load(entry)
        except MissingExtraError:
            absent[name] = extensions.extra_of(entry)
    return absent


def without_absent(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content without the sections of extensions that are not installed, and say so once.

    A params.yaml that a team shares has the sections that anybody's work needs. Nothing that is installed
    here reads them.
    """
    ignored = content.keys() & absent_sections().keys()
    if ignored:
        _tell(tuple(sorted(ignored)))
    return {name: value for name, value in content.items() if name not in ignored}


def refuse_absent(names: Iterable[str], what: str) -> None:
    """Raise an error if a name is that of a section whose extension is not installed.

    Args:
        names: Sections.
        what: What cannot be done without the extension.

    Raises:
        ParamsError: One is.
    """
    for name in names:
        if name in absent_sections():
            extra = absent_sections()[name]
            raise ParamsError(f"{name}: {what} needs pip install 'voxveil[{extra}]', which has this section")


def section_of(params: Params, kind: type[_T]) -> _T:
    """Return the registered section of class ``kind``.

    Raises:
        ParamsError: The params file has no such section, or nothing registers it.
    """
    name = _name_of(params, kind)
    section: _T | None = getattr(params, name)
    if section is None:
        raise ParamsError(f"{name}: {MISSING}")
    return section


def with_section(params: Params, section: object) -> Params:
    """Return the parameters with another registered section of the same class."""
    changed: dict[str, Any] = {_name_of(params, type(section)): section}
    return dataclasses.replace(params, **changed)


def _name_of(params: Params, kind: type) -> str:
    for field in dataclasses.fields(params):
        if field.type is kind:
            return field.name
    raise ParamsError(f"no section of class {kind.__name__} is registered; install voxveil again (make dev)")


@cache
def _tell(names: tuple[str, ...]) -> None:
    """Print once which sections are ignored."""
    extras = sorted({absent_sections()[name] for name in names})
    print(
        f"voxveil: parameters: {', '.join(names)}: ignored, since the extra {', '.join(extras)} that has"
        f" {'this section' if len(names) == 1 else 'these sections'} is not installed",
        file=sys.stderr,
    )
