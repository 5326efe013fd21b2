"""A disk that is full in the middle of ``data add`` or ``data get``: one line, and nothing half-made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made_datasets import commit, digests, run_data, shell, speech, write_libri

#: A mount that only this process and its children see; it needs no right but its own.
_OWN = ["unshare", "--user", "--map-root-user", "--mount"]

_SCRIPT = """
disk=$1 begin=$2 end=$3 room=$4
shift 4
mount -t tmpfs -o size=64m none "$disk" && cp -a "$begin/." "$disk/" && cd "$disk" || exit 99
free=$(df --output=avail -B1 . | tail -1)
head -c $((free - room)) /dev/zero > .git/ballast
"$@"
status=$?
rm .git/ballast
cp -a . "$end"
exit $status
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where a small disk can be mounted."""
    if not shutil.which("unshare") or subprocess.run([*_OWN, "true"], check=False).returncode:
        pytest.skip("no mounts of one's own here")
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run([*_OWN, "mount", "-t", "tmpfs", "none", str(folder)], check=False).returncode:
        pytest.skip("no tmpfs of one's own here")
    return folder


def on_small_disk(disk: Path, room: int, begin: Path, end: Path, *words: str) -> tuple[int, str]:
    """Run ``voxveil data WORDS`` in a copy of ``begin`` on a disk with ``room`` bytes to spare.

    Returns:
        Exit status and what it said on standard error; what the disk held at the end is copied to ``end``.
    """
    command = [sys.executable, "-m", "voxveil.cli.main", "data", *words]
    result = subprocess.run(
        [*_OWN, "sh", "-c", _SCRIPT, "sh", str(disk), str(begin), str(end), str(room), *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 99, result.stderr
    return result.returncode, result.stderr


def large(folder: Path) -> Path:
    """Write a corpus of about a megabyte."""
    write_libri(folder, {"20": "F", "21": "M"}, each=8)
    for number, path in enumerate(sorted(folder.rglob("*.flac"))):
        speech(path, number, samples=32_000)
    return folder


def one_line(err: str) -> str:
    (line,) = [each for each in err.splitlines() if each.startswith("voxveil: error: ")]
    assert "Traceback" not in err
    return line


@pytest.mark.parametrize("room", [400_000, 1_200_000], ids=["while copying", "in DVC's cache"])
def test_an_add_that_finds_no_room_leaves_the_version_before(
    disk: Path, room: int, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    assert run_data(capsys, "add", "clinic", str(write_libri(tmp_path / "one", {"20": "F"})))[0] == 0
    commit(project, "one")
    corpus = large(tmp_path / "two")
    after = tmp_path / "after"
    status, err = on_small_disk(disk, room, project, after, "add", "clinic", str(corpus))
    assert status == 1
    assert "No space left on device" in one_line(err)
    # Git sees nothing of it; what is registered is the version before.
    assert shell(after, "git", "status", "--porcelain") == ""
    # With room, the same command goes on.
    monkeypatch.chdir(after)
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    assert digests(after / "data/clinic") == digests(corpus)
    assert not list(after.rglob("*.partial"))


def test_a_get_that_finds_no_room_leaves_nothing(
    disk: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = large(tmp_path / "in")
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    shell(project, "dvc", "push")
    empty, after = tmp_path / "empty", tmp_path / "after"
    (empty / ".git").mkdir(parents=True)
    words = ["get", "clinic", "--rev", "main", "--out", "got", "--repo", str(project)]
    status, err = on_small_disk(disk, 400_000, empty, after, *words)
    assert status == 1
    line = one_line(err)
    assert "No space left on device" in line and "nothing was written" in line
    assert sorted(path.name for path in after.iterdir()) == [".git"]
