"""Exceptions for faulty input; the message is one line that names the file or parameter.

The command line prints ``voxveil: error: <message>`` and exits with
:attr:`VoxveilError.exit_code`; a traceback is shown for bugs only.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "DataError",
    "IncompleteInputError",
    "InputError",
    "MissingExtraError",
    "ParamsError",
    "PrivacyError",
    "VoxveilError",
    "import_extra",
    "one_line",
    "optional_module",
]


class VoxveilError(Exception):
    """Base class: the message names file, utterance or parameter, what was got and what is allowed."""

    exit_code = 2


class InputError(VoxveilError):
    """A file, utterance or argument that cannot be used."""


class ParamsError(VoxveilError):
    """A wrong, unknown or missing parameter, named by its dotted path."""


class IncompleteInputError(InputError):
    """The output of an earlier stage is absent, unfinished or changed since it was finished."""


class PrivacyError(VoxveilError):
    """Something would weaken, or fail to account for, the privacy guarantee. Nothing was released."""

    exit_code = 3


class MissingExtraError(VoxveilError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; it comes with: pip install 'voxveil[{extra}]'")


def optional_module(module: str, extra: str, package: str = "") -> Any:
    """Import a module of an optional dependency.

    Args:
        module: Its dotted name.
        extra: The extra of voxveil that brings it.
        package: Name of the package, where it is not that of the module.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(package or module, extra) from None


class DataError(VoxveilError):
    """Git, DVC or the dataset store fails or cannot be reached."""

    exit_code = 1


def import_extra(module: str, extra: str, package: str = "") -> Any:
    """Import a module of an optional dependency and return it.

    Args:
        module: Its full name, such as ``kfp.compiler``.
        extra: The extra of voxveil that installs it.
        package: Name of the package for the message; the first part of ``module`` unless given.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(package or module.partition(".")[0], extra) from None


def one_line(text: object, longest: int = 300) -> str:
    """Return ``text`` as one line of at most ``longest`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
