"""Fixtures every test may use; data of others is looked for, never required."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no fault of the code, and a change is not to blame for an example that another run did
# not draw: the same examples every time. `pytest --hypothesis-profile explore` draws new ones.
settings.register_profile("voxveil", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("voxveil")


ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("VOXVEIL_TRACKING", "off")
# Before numpy loads: on tiny matrices idle BLAS threads only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout (or the copy of it) under test."""
    return ROOT


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch use one thread: only then does it promise the same bits for the same training."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _outside(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT.parent / default)
    if not path.is_dir():
        pytest.skip(f"{variable} is not set and there is no {default} beside the checkout")
    return path


@pytest.fixture(scope="session")
def librispeech() -> Path:
    """A folder in LibriSpeech layout with subsets train-mini, test-mini, test-other, dev-true."""
    path = _outside("VOXVEIL_TEST_DATA", "shared/data") / "LibriSpeech"
    if not path.is_dir():
        pytest.skip("the test data has no LibriSpeech folder")
    return path


@pytest.fixture(scope="session")
def edge_audio() -> Path:
    """A folder of hostile audio files."""
    path = _outside("VOXVEIL_TEST_DATA", "shared/data") / "edge"
    if not path.is_dir():
        pytest.skip("the test data has no edge folder")
    return path


@pytest.fixture(scope="session")
def reference_metrics() -> Path:
    """A folder of score sets with right values (expected.json)."""
    path = _outside("VOXVEIL_TEST_REFERENCE", "shared/reference") / "metrics"
    if not path.is_dir():
        pytest.skip("the reference has no metrics folder")
    return path
