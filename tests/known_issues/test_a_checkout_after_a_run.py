"""A newcomer's report: `make demo`, then `make test` in one checkout, failed on the dvc.lock of the demo.

No test may depend on what a run left in the checkout, nor on what the README's daily work commits there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import copy_source, source_files

#: What a demo and the README's commands leave: file, and whether daily work commits it.
LEFT_BEHIND = {
    "dvc.lock": True,
    "params.yaml": True,
    "recordings/private.wav": False,
    "private/ledger.json": False,
    "result.json": False,
    "outputs/report/index.html": False,
    "metrics/anon.metrics.json": False,
    "models/anon/model.json": False,
    "ledger/release.json": False,
    "mlflow.db": False,
    "demo-audio/anon.flac": False,
}


@pytest.fixture(params=["as the demo leaves it", "with the lock and parameters committed"])
def used(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Path:
    """A small checkout in which a run ended, with a new test that somebody is writing."""
    checkout = tmp_path / "a checkout\u00e9"
    copy = (".gitignore", "params", "src/voxveil", "tests/source_tree.py", "tests/in_copy.sh")
    for path in source_files(root):
        if any(path == Path(name) or Path(name) in path.parents for name in copy):
            (checkout / path).parent.mkdir(parents=True, exist_ok=True)
            (checkout / path).write_bytes((root / path).read_bytes())
    (checkout / "tests/in_copy.sh").chmod(0o755)
    git(checkout, "init", "-q")
    git(checkout, "add", "-A")
    commit(checkout)
    for name, committed in LEFT_BEHIND.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("left by a run\n")
        if committed and request.param.startswith("with"):
            git(checkout, "add", name)
    commit(checkout)
    (checkout / "tests/test_new.py").write_text("def test_new():\n    pass\n")
    return checkout


def git(folder: Path, *command: str) -> str:
    done = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "x", "--allow-empty")


def test_a_copy_holds_no_product_of_a_run(used: Path, root: Path, tmp_path: Path) -> None:
    copy = copy_source(used, tmp_path / "copy")
    left = [name for name in LEFT_BEHIND if name != "params.yaml" and (copy / name).exists()]
    assert left == []
    assert (copy / "params.yaml").read_text() == (root / "params.yaml").read_text()
    assert (copy / "tests/test_new.py").is_file()
    assert git(copy, "status", "--porcelain") == ""


def test_the_suite_starts_in_such_a_copy_without_the_environment_of_the_person(used: Path) -> None:
    (used / "tests/test_new.py").write_text(
        "import os\n"
        "from pathlib import Path\n"
        "def test_new():\n"
        "    assert not Path('dvc.lock').exists()\n"
        "    assert 'MLFLOW_TRACKING_URI' not in os.environ\n"
        "    assert 'VOXVEIL_LEDGER' not in os.environ\n"
    )
    environment = dict(
        os.environ,
        MLFLOW_TRACKING_URI="http://team.example:5000",
        VOXVEIL_LEDGER="s3://team/ledger",
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    )
    done = subprocess.run(
        ["tests/in_copy.sh", "-p", "no:xdist", "tests/test_new.py"],
        cwd=used,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert sorted(path.name for path in used.iterdir() if path.name.endswith(".lock")) == ["dvc.lock"]
