"""Fixtures every test may use; data of others is looked for, never required."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import skipped_tests
from given_files import DATA, given_folder, sources

if TYPE_CHECKING:
    from made_hostile import Hostile

# A slow machine is no fault of the code, and a change is not to blame for an example that another run did
# not draw: the same examples every time. `pytest --hypothesis-profile explore` draws new ones.
settings.register_profile("voxveil", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("voxveil")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(skipped_tests)


ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("VOXVEIL_TRACKING", "off")
# Before numpy loads: on tiny matrices idle BLAS threads only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout (or the copy of it) under test."""
    return ROOT


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share, for what is made once and only read after that."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def empty_store(shared_folder: Path) -> Path:
    """A database with MLflow's tables and no experiment, to be copied: making it takes seconds."""
    path = shared_folder / "mlflow.db"
    with (shared_folder / "mlflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            from mlflow.tracking import MlflowClient

            partial = shared_folder / "mlflow.partial"
            MlflowClient(f"sqlite:///{partial}").search_experiments()
            partial.rename(path)
    return path


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch use one thread: only then does it promise the same bits for the same training."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def librispeech() -> Path:
    """Real speech in LibriSpeech layout, subsets train-mini, test-mini, test-other and dev-true."""
    folder = given_folder(DATA, "LibriSpeech")
    if folder is None:
        pytest.skip(
            "a rate on real speech needs the LibriSpeech excerpt (subsets test-mini, test-other, dev-true),"
            " which is not in the repository: set VOXVEIL_TEST_DATA to the folder that holds LibriSpeech/,"
            " or lay that folder beside the checkout as shared/data"
        )
    return folder


@pytest.fixture(scope="session")
def weights() -> Iterator[Path]:
    """Packages that carry pretrained weights (requirements/weights.txt), importable during the test."""
    folder = Path(sys.prefix) / "weights"
    if not folder.is_dir():
        reason = f"no pretrained weights in {folder}; 'requirements/install.sh dev' installs them there"
        if os.environ.get("VOXVEIL_TEST_MODULES") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def imported(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that imports a model whose weights are in a package, once in a session."""
    from made_pretrained import Imported

    return Imported(tmp_path_factory.mktemp("pretrained"))


@pytest.fixture(scope="module", params=sources(DATA, "edge"))
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    """A folder of hostile recordings, made on the spot or given, and what must become of each."""
    from made_hostile import given_hostile, write_hostile  # loads numpy, see above

    if request.param == "made":
        return write_hostile(tmp_path_factory.mktemp("hostile") / "in")
    return given_hostile()
