"""The end of a run names every skipped test and why; a missing package fails where all must be there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skipped_tests import REQUIRED

TESTS = {
    "test_some.py": """
import pytest

def test_runs():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_of_data(number):
    pytest.skip("needs data: set DATA to the folder of it" + ", which is a long story" * 9)

def test_of_a_package():
    pytest.importorskip("no_such_package", reason="needs the extra x")

@pytest.mark.skipif(True, reason="only on Sundays")
def test_of_a_day():
    pass
""",
    "test_other.py": """
import pytest
pytest.importorskip("no_such_package", reason="needs the extra x")

def test_runs():
    pass
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, root: Path, *words: str, **variables: str) -> tuple[int, str]:
    paths = os.pathsep.join([str(root / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-p", "xdist", "-p", "skipped_tests", *words],
        cwd=folder,
        env={**environment, REQUIRED: "", "COLUMNS": "120", "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "two at a time"])
def test_skipped_tests_are_listed_by_reason(folder: Path, root: Path, options: list[str]) -> None:
    status, said = run(folder, root, *options)
    assert status == 0
    lines = said.splitlines()
    start = next(index for index, line in enumerate(lines) if "what was skipped, and why" in line)
    assert lines[start + 1 : start + 9] == [
        "needs data: set DATA to the folder of it" + ", which is a long story" * 9 + ":",
        "    test_some.py::test_of_data[1]",
        "    test_some.py::test_of_data[2]",
        "needs the extra x:",
        "    test_other.py",
        "    test_some.py::test_of_a_package",
        "only on Sundays:",
        "    test_some.py::test_of_a_day",
    ]
    assert "1 passed, 5 skipped" in lines[-1]


def test_without_skips_there_is_no_list(folder: Path, root: Path) -> None:
    status, said = run(folder, root, "-k", "test_runs", "--ignore", "test_other.py")
    assert status == 0
    assert "why" not in said


def test_a_missing_package_fails_where_all_are_required(folder: Path, root: Path) -> None:
    status, said = run(folder, root, "test_some.py", **{REQUIRED: "required"})
    assert status == 1
    assert "FAILED test_some.py::test_of_a_package - ModuleNotFoundError: No module" in said
    assert "1 failed, 1 passed, 3 skipped" in said
    # A file that needs it as a whole cannot be collected, which ends the run.
    status, said = run(folder, root, **{REQUIRED: "required"})
    assert status == 2
    assert "ERROR test_other.py" in said and "No module named 'no_such_package'" in said


def test_make_test_requires_every_package(root: Path) -> None:
    assert f"{REQUIRED}=required" in (root / "tests/in_copy.sh").read_text()
