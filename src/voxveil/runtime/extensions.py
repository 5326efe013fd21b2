"""Registered extensions: commands, pipeline steps and parameter sections that lie outside the product.

An extension is an entry point in the ``pyproject.toml`` of the package that has it. The name of the entry
point is the name of the command, step or section. Reading entry points imports nothing; :func:`load` imports
one extension when it is used. What voxveil itself registers lies in a package of the name of the extra that
it needs: ``voxveil.NAME`` needs ``voxveil[NAME]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.runtime.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["COMMANDS", "PARAMS", "STEPS", "load", "registered", "summary"]

#: Group of commands: modules with ``HELP``, ``EPILOG``, ``add_arguments(parser)`` and ``run(args)``.
COMMANDS = "voxveil.commands"
#: Group of pipeline steps: :class:`voxveil.kubeflow.steps.call.Step` objects.
STEPS = "voxveil.steps"
#: Group of parameter sections: dataclasses of :func:`voxveil.config.fields.knob` fields.
PARAMS = "voxveil.params"


@lru_cache(maxsize=3)
def registered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, sorted; nothing of them is imported.

    Raises:
        InputError: Two installed packages register the same name.
    """
    # Its import takes as long as the rest of 'voxveil --help', so it is left to where it is needed.
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        if entry.name in found and found[entry.name].value != entry.value:
            raise InputError(
                f"{group}: {entry.name!r} is registered twice, as {found[entry.name].value} and"
                f" {entry.value}; uninstall one of the two packages"
            )
        found[entry.name] = entry
    return found


def load(entry: EntryPoint) -> Any:
    """Import an extension and return its object.

    Raises:
        MissingExtraError: The module, or a package that it imports, is not installed.
        InputError: Likewise, and the extension is another package's.
    """
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        missing = error.name or entry.module
        if not extra_of(entry):
            raise InputError(f"{entry.name}: {entry.value} needs {missing}, which is not installed") from None
        raise MissingExtraError(missing, extra_of(entry)) from None


def extra_of(entry: EntryPoint) -> str:
    """Return the extra that an extension of voxveil needs; empty for that of another package."""
    first, _, rest = entry.module.partition(".")
    return rest.partition(".")[0] if first == "voxveil" else ""


def summary(entry: EntryPoint) -> str:
    """Return the help line of a registered command without importing its module.

    It is what the first line of the module says behind its colon: the first line of the docstring. Where the
    module is not installed, the help line says so, and which extra it comes with.
    """
    from importlib.util import find_spec

    try:
        spec = find_spec(entry.module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        extra = extra_of(entry)
        return str(MissingExtraError(entry.module, extra)) if extra else f"{entry.module} is not installed"
    with Path(spec.origin).open(encoding="utf-8") as source:
        return source.readline().partition(": ")[2].rstrip('."\n')
