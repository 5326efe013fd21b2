"""Dataset versions travel through an S3 remote: push, wipe, pull, equal bytes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.services

DVC = str(Path(sys.executable).with_name("dvc"))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_push_wipe_pull_gives_the_same_bytes(s3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    s3.client().create_bucket(Bucket="data")
    repository, clone = tmp_path / "one", tmp_path / "two"
    repository.mkdir()

    def run(*command: str, where: Path = repository) -> None:
        subprocess.run(command, cwd=where, check=True, capture_output=True)

    run("git", "init", "-q")
    run(DVC, "init", "-q")
    (repository / "corpus").mkdir()
    for index in range(20):
        (repository / "corpus" / f"audio-{index:03d}.tar").write_bytes(bytes([index]) * 50_000)
    before = digests(repository / "corpus")
    run(DVC, "add", "corpus")
    run(DVC, "remote", "add", "-d", "team", "s3://data/store")
    run(DVC, "remote", "modify", "team", "endpointurl", s3.endpoint)
    run(DVC, "push")
    run("git", "add", "-A")
    run("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "corpus")
    run("git", "clone", "-q", str(repository), str(clone), where=tmp_path)
    run(DVC, "pull", where=clone)
    assert digests(clone / "corpus") == before
    assert s3.environment["AWS_SECRET_ACCESS_KEY"] not in "".join(
        path.read_text() for path in (clone / ".dvc").glob("config*")
    )
