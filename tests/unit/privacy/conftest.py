"""Entries and registers for the tests of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from voxveil.privacy import Entry
from voxveil.privacy.register import FolderRegister

from .ledger_entries import make_entry


@pytest.fixture
def entry() -> Callable[..., Entry]:
    return make_entry


@pytest.fixture
def register(tmp_path: Path) -> FolderRegister:
    return FolderRegister(tmp_path / "register")
