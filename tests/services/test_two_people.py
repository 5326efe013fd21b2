"""Two people at one remote, a kill and an outage in the middle of a push: nothing is lost."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from made_datasets import commit, data_error, digests, make_project, run_data, shell, write_libri
from made_gateway import Gateway

pytestmark = pytest.mark.services

PART = 5
DVC = [sys.executable, "-m", "dvc"]


@pytest.fixture
def bucket(s3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of the test's own; keys are in the environment, the endpoint is not."""
    for name, value in s3.environment.items():
        if name != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    return f"speech-{secrets.token_hex(4)}"


def share(folder: Path, bucket: str, endpoint: str, capsys, monkeypatch) -> Path:
    """Make a project with a remote, and a bare repository that everybody pushes to."""
    make_project(folder)
    monkeypatch.chdir(folder)
    remote = ["init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", endpoint]
    assert run_data(capsys, *remote)[0] == 0
    return folder


def stored(s3, bucket: str) -> int:
    pages = s3.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="voxveil/files/")
    return sum(len(page.get("Contents", ())) for page in pages)


def drop_halves(s3, bucket: str) -> int:
    """Delete what a cut upload left (AWS keeps no half object, other stores may); return how many."""
    client, dropped = s3.client(), 0
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="voxveil/files/md5/")
    for item in [item for page in pages for item in page.get("Contents", ())]:
        first, rest = item["Key"].split("/")[-2:]
        content = client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
        if hashlib.md5(content).hexdigest() != (first + rest).removesuffix(".dir"):
            client.delete_object(Bucket=bucket, Key=item["Key"])
            dropped += 1
    return dropped


def pushing(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DVC, "push", *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A store that is away is asked for every file; by default five times, with pauses.
        env={**os.environ, "AWS_MAX_ATTEMPTS": "1"},
    )


def push_a_part(folder: Path, door: Gateway) -> subprocess.Popen[str]:
    """Start a push through the gateway and return once it waits with PART objects uploaded."""
    door.hold_after(PART)
    push = pushing(folder, "--jobs", "1")
    while not door.held.wait(0.1):
        assert push.poll() is None, push.communicate()[0]
    return push


def test_two_who_push_at_once_lose_nothing(
    s3, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = share(tmp_path / "ann", bucket, s3.endpoint, capsys, monkeypatch)
    both = {"20": "F", "21": "M"}
    assert run_data(capsys, "add", "clinic", str(write_libri(tmp_path / "first", both)))[0] == 0
    commit(ann, "first")
    shell(ann, "dvc", "push")
    hub = tmp_path / "hub.git"
    shell(tmp_path, "git", "clone", "-q", "--bare", str(ann), str(hub))
    shell(ann, "git", "remote", "add", "origin", str(hub))
    bob = tmp_path / "bob"
    shell(tmp_path, "git", "clone", "-q", str(hub), str(bob))
    shell(bob, "dvc", "pull")
    versions = {}
    for who, speaker in ((ann, "22"), (bob, "23")):
        monkeypatch.chdir(who)
        corpus = write_libri(tmp_path / f"of-{who.name}", {**both, speaker: "F"}, each=6)
        assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
        commit(who, f"with {speaker}")
        versions[who.name] = digests(corpus)
    pushes = [pushing(who) for who in (ann, bob)]
    said = [push.communicate()[0] for push in pushes]
    assert [push.returncode for push in pushes] == [0, 0], said
    shell(ann, "git", "push", "-q", "origin", "HEAD:main")
    late = subprocess.run(["git", "push", "origin", "HEAD:main"], cwd=bob, capture_output=True, check=False)
    assert late.returncode != 0
    # As docs/team.md says: take one side whole, then add what both added.
    names = {
        f"GIT_{who}_{what}": "tester@localhost"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(
        ["git", "pull", "-q", "--no-rebase", "origin", "main"],
        cwd=bob,
        env={**os.environ, **names},
        capture_output=True,
        check=False,
    )
    union = write_libri(tmp_path / "union", {**both, "22": "F", "23": "F"}, each=6)
    assert "git checkout --ours" in data_error(capsys, "add", "clinic", str(union))
    shell(
        bob,
        "git",
        "checkout",
        "--ours",
        "--",
        "data/clinic.dvc",
        "data/clinic.manifest.tsv",
        "data/clinic.json",
    )
    shell(bob, "dvc", "checkout", "--force", "data/clinic.dvc")
    assert run_data(capsys, "add", "clinic", str(union))[0] == 0
    commit(bob, "with both")
    shell(bob, "dvc", "push")
    shell(bob, "git", "push", "-q", "origin", "HEAD:main")
    # Everybody's version can be had by anybody: ann's, bob's, and both together.
    monkeypatch.chdir(tmp_path)
    wanted = {"main": digests(union), "main~1": versions["bob"], "main^2": versions["ann"]}
    for number, (revision, content) in enumerate(wanted.items()):
        out = f"got-{number}"
        status, _, err = run_data(
            capsys, "get", "clinic", "--rev", revision, "--out", out, "--repo", f"file://{hub}"
        )
        assert status == 0, err
        assert digests(tmp_path / out) == content, revision


def test_a_push_that_was_killed_is_not_taken_for_whole(
    s3, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Gateway(s3.port)
    project = share(tmp_path / "project", bucket, door.address, capsys, monkeypatch)
    corpus = write_libri(tmp_path / "in", {str(20 + n): "F" for n in range(4)}, each=10)
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    push = push_a_part(project, door)
    os.killpg(push.pid, signal.SIGKILL)
    push.wait()
    door.shut()
    door.release()
    door.reopen()
    assert 1 <= stored(s3, bucket) <= PART
    monkeypatch.chdir(tmp_path)
    wanted = ["get", "clinic", "--rev", "main", "--out", "got", "--repo", f"file://{project}"]
    line = data_error(capsys, *wanted)
    assert "the remote lacks data/clinic" in line and "dvc push" in line
    assert not (tmp_path / "got").exists()
    shell(project, "dvc", "push")
    status, _, err = run_data(capsys, *wanted)
    assert status == 0, err
    assert digests(tmp_path / "got") == digests(corpus)


def test_a_store_that_goes_away_during_a_push_is_caught_up(
    s3, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Gateway(s3.port)
    project = share(tmp_path / "project", bucket, door.address, capsys, monkeypatch)
    corpus = write_libri(tmp_path / "in", {str(20 + n): "F" for n in range(4)}, each=10)
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    push = push_a_part(project, door)
    door.shut()
    door.release()
    said = push.communicate()[0]
    assert push.returncode != 0 and "failed to push" in said
    monkeypatch.chdir(tmp_path)
    wanted = ["get", "clinic", "--rev", "main", "--out", "got", "--repo", f"file://{project}"]
    assert door.address in data_error(capsys, *wanted)
    door.reopen()
    assert drop_halves(s3, bucket) <= 1
    shell(project, "dvc", "push")
    status, _, err = run_data(capsys, *wanted)
    assert status == 0, err
    assert digests(tmp_path / "got") == digests(corpus)
    door.shut()
