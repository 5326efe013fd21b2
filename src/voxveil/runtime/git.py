"""Calls of the ``git`` program; the caller turns a failure into an error."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NOT_INSTALLED", "GitAnswer", "ask_git"]

#: Status of an answer where there is no ``git``, as a shell would give.
NOT_INSTALLED = 127

#: Every question here is about what lies on this machine; a network file system may hang for ever.
_PATIENCE = 120.0


@dataclass(frozen=True)
class GitAnswer:
    """Exit status and output of a ``git`` command.

    Attributes:
        status: Its exit status, 0 if it succeeded.
        text: What it printed.
        reason: What it complained of.
    """

    status: int
    text: str
    reason: str

    @property
    def line(self) -> str:
        """The text without white space around it; empty where ``git`` failed."""
        return self.text.strip() if self.status == 0 else ""


def ask_git(folder: Path, *arguments: str) -> GitAnswer:
    """Run ``git ARGUMENTS`` in ``folder``.

    Args:
        folder: Where; it must exist.
        arguments: A command that asks, and neither waits for a person nor for a network.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            # Reasons are told apart by their words.
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return GitAnswer(NOT_INSTALLED, "", "git is not installed")
    except subprocess.TimeoutExpired:
        return GitAnswer(1, "", f"git {arguments[0]} did not end within {_PATIENCE:.0f} s")
    return GitAnswer(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )
