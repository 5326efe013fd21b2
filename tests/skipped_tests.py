"""Skipped tests: all are listed with their reasons, and none may hide a package that is not installed.

A pytest plugin that tests/conftest.py registers.
"""

from __future__ import annotations

import importlib
import os
from collections import defaultdict
from types import ModuleType

import pytest

__all__ = ["REQUIRED", "pytest_configure", "pytest_terminal_summary"]

#: With this variable at ``required`` a module that cannot be imported is a failure, else the tests that need
#: it are skipped. tests/in_copy.sh sets it, since the lock that it runs with holds every package.
REQUIRED = "VOXVEIL_TEST_MODULES"


def pytest_configure() -> None:
    if os.environ.get(REQUIRED) == "required":
        pytest.importorskip = _import_or_fail  # type: ignore[assignment]


def _import_or_fail(modname: str, *_: object, **__: object) -> ModuleType:
    """Stand in for ``pytest.importorskip``; the ImportError of a missing module is the test's failure."""
    return importlib.import_module(modname)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was skipped, by reason; a file that was skipped as a whole is one entry."""
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    for report in terminalreporter.getreports("skipped"):
        reasons[report.longrepr[2].removeprefix("Skipped: ")].add(report.nodeid)
    if not reasons:
        return
    terminalreporter.section("what was skipped, and why")
    for reason, names in sorted(reasons.items()):
        terminalreporter.line(f"{reason}:")
        for name in sorted(names):
            terminalreporter.line(f"    {name}")
