"""Summaries of three systems, evaluated once."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.results.report.results import Summary, read_summaries


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with finished outputs up to evaluate."""
    root = tmp_path_factory.mktemp("evaluated")
    make_outputs(root)
    for name in SYSTEMS:
        evaluate(root, name)
    return root


@pytest.fixture(scope="session")
def summaries(evaluated: Path) -> list[Summary]:
    """Their summaries, in the order of the parameters."""
    return read_summaries(evaluated / "outputs/evaluate", SYSTEMS)
