"""Actions of a command, and options that several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.runtime.errors import InputError

__all__ = ["add_action", "add_actions", "add_params", "require_least"]


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """Return the object that takes the actions of a command; one of them must be given."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_action(
    actions: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    help_line: str,
    **more: Any,
) -> argparse.ArgumentParser:
    """Add an action to a command and return its parser.

    Args:
        actions: What :func:`add_actions` returned.
        name: Name of the action.
        run: Runs it, in place of the command's own ``run``.
        help_line: One line of help.
        more: Further arguments of :class:`argparse.ArgumentParser`.
    """
    parser: argparse.ArgumentParser = actions.add_parser(name, help=help_line, **more)
    parser.set_defaults(run=run)
    return parser


def add_params(parser: argparse.ArgumentParser, help_line: str = "params file (%(default)s)") -> None:
    """Add the option for the file of parameters, ``params.yaml`` unless given."""
    parser.add_argument("--params", type=Path, default=Path("params.yaml"), metavar="FILE", help=help_line)


def require_least(args: argparse.Namespace, **least: int) -> None:
    """Check that options are at least so large.

    Args:
        args: The parsed options.
        least: Smallest value allowed, by the name of the option with ``_`` in place of ``-``.

    Raises:
        InputError: Naming the option, its value and what is allowed.
    """
    for name, low in least.items():
        if getattr(args, name) < low:
            option = name.replace("_", "-")
            raise InputError(f"--{option} must be {low} or more, got {getattr(args, name)}")
