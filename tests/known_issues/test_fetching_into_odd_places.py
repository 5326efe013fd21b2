"""A fetch that fails leaves nothing, says why in one line, and no second one gets between its moves.

A full disk was told as a list of tuples of every file; a params.yaml that is a folder left all results in a
hidden folder; of two at once into one folder one took away what the other was about to put into place.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.config import Params
from voxveil.kubeflow import fetching
from voxveil.kubeflow.fan_in import location
from voxveil.kubeflow.fetching import Finished, fetch_results
from voxveil.kubeflow.locations import Locations
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import InputError


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Params]:
    root = tmp_path_factory.mktemp("chain")
    params = make_outputs(root, {"original": SYSTEMS["original"]}, samples=False)
    evaluate(root, "original")
    (root / "outputs/report").mkdir()
    (root / "outputs/report/index.html").write_text("page")
    finish(root / "outputs/report", "report", None, "report")
    return root, params


@pytest.fixture
def run(chain: tuple[Path, Params], tmp_path: Path) -> Finished:
    shutil.copytree(chain[0] / "outputs", tmp_path / "store")

    def of(place: str, name: str) -> str:
        folder = tmp_path / "store" / place
        return location(name, str(folder), require_done(folder, name).digest)

    evaluated, scored = ({"original": of(f"{stage}/original", "original")} for stage in ("evaluate", "score"))
    return Finished("the run", chain[1], Locations(evaluated, scored, of("report", "report")))


def test_a_failed_fetch_leaves_no_folder(run: Finished, tmp_path: Path) -> None:
    (tmp_path / "store/report/index.html").write_text("another page")
    with pytest.raises(InputError, match="is not what the run made"):
        fetch_results(run, tmp_path / "new/project")
    assert not (tmp_path / "new").exists()


def test_what_the_run_did_not_make_is_not_brought(run: Finished, tmp_path: Path) -> None:
    (tmp_path / "store/evaluate/original/later.json").write_text("{}")
    with pytest.raises(InputError, match=r"evaluate/original: is not what the run made: later\.json came"):
        fetch_results(run, tmp_path / "project")
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize("place", [".", "outputs"])
def test_a_link_to_nothing_is_named(run: Finished, tmp_path: Path, place: str) -> None:
    link = tmp_path / "project" / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a link to nothing; it must be a folder"):
        fetch_results(run, tmp_path / "project")


def test_params_that_are_a_folder_are_refused_first(run: Finished, tmp_path: Path) -> None:
    (tmp_path / "project/params.yaml").mkdir(parents=True)
    with pytest.raises(InputError, match=r"params\.yaml: is a folder; it must be a file"):
        fetch_results(run, tmp_path / "project")
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["params.yaml"]


def test_of_two_at_once_one_is_refused(
    run: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second starts when the first has fetched everything and is about to put it into place."""
    write, refused = fetching._write_params, []

    def second(*given: Any) -> str:
        monkeypatch.setattr(fetching, "_write_params", write)
        with pytest.raises(InputError, match="another process is writing this output"):
            fetch_results(run, tmp_path / "project")
        refused.append(True)
        return write(*given)

    monkeypatch.setattr(fetching, "_write_params", second)
    lines = fetch_results(run, tmp_path / "project", scores=True)
    assert refused and len(lines) == 4
    found = sorted(path.name for path in (tmp_path / "project/outputs").iterdir())
    assert found == ["evaluate", "report", "score"]


def test_a_folder_that_does_not_fit_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def full(*given: Any) -> None:
        reasons = [str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)) for name in ("a\n", "b")]
        raise shutil.Error([("x", "y", reason) for reason in reasons])

    monkeypatch.setattr("voxveil.kubeflow.fetching.finished_here", full)
    assert main(["pipeline", "fetch", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error == f"voxveil: error: [Errno {errno.ENOSPC}] No space left on device: 'a\\n'\n"
