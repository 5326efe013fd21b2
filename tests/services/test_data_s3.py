"""``voxveil data`` on a real S3 server: set up, exchanged between clones, refused in one line."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from made_datasets import commit, digests, make_project, shell, write_libri
from voxveil.cli.main import main

pytestmark = pytest.mark.services


@pytest.fixture
def project(s3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a project without a remote; keys are in the environment, the endpoint is not."""
    for name, value in s3.environment.items():
        if name != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    folder = make_project(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def bucket() -> str:
    return f"speech-{secrets.token_hex(4)}"


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["data", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


def one_line(err: str) -> str:
    lines = err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("voxveil: error: "), err
    return lines[0]


def set_up(capsys: pytest.CaptureFixture[str], s3, bucket: str) -> None:
    status, _, err = data(capsys, "init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", s3.endpoint)
    assert status == 0, err


def test_init_makes_a_bucket_that_keeps_versions_and_cleans_up(
    s3, project: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = s3.client()
    client.create_bucket(Bucket=bucket)
    rule = {
        "ID": "somebody-elses",
        "Status": "Enabled",
        "Filter": {"Prefix": "other/"},
        "Expiration": {"Days": 3},
    }
    client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    remote = ["init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", s3.endpoint]
    for days in ("30", "40"):
        status, out, err = data(capsys, *remote, "--deleted-days", days)
        assert status == 0, err
        assert f"after {days} days" in out
    assert client.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    rules = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    ours = next(each for each in rules if each["ID"] == "voxveil-voxveil")
    assert len(rules) == 2
    assert ours["NoncurrentVersionExpiration"]["NoncurrentDays"] == 40
    assert ours["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] == 7
    # The probe is gone, its versions too.
    left = client.list_object_versions(Bucket=bucket, Prefix="voxveil/")
    assert not left.get("Versions") and not left.get("DeleteMarkers")
    config = (project / ".dvc/config").read_text()
    assert "remote = team" in config and s3.endpoint in config
    assert "tests-secret" not in config and "tests-key" not in config


def test_a_version_goes_from_clone_to_clone(
    s3, project: Path, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    set_up(capsys, s3, bucket)
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"}, each=5)
    before = digests(corpus)
    assert data(capsys, "add", "clinic", str(corpus), "--private")[0] == 0
    commit(project, "one")
    shell(project, "git", "tag", "v1")
    shell(project, "dvc", "push")
    # Wiped and pulled: the same bytes.
    shutil.rmtree(project / ".dvc/cache")
    shutil.rmtree(project / "data/clinic")
    shell(project, "dvc", "pull")
    assert digests(project / "data/clinic") == before
    # A colleague clones, pulls, makes a version; it comes back.
    clone = tmp_path / "clone"
    shell(tmp_path, "git", "clone", "-q", str(project), str(clone))
    shell(clone, "dvc", "pull")
    assert digests(clone / "data/clinic") == before
    monkeypatch.chdir(clone)
    write_libri(corpus, {"20": "F", "21": "M", "22": "F"}, each=5)
    assert data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(clone, "two")
    shell(clone, "dvc", "push")
    shell(project, "git", "pull", "-q", str(clone), "main")
    shell(project, "dvc", "pull")
    assert digests(project / "data/clinic") == digests(corpus)
    # A third has nothing but the addresses.
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    for revision, wanted in (("v1", before), ("main", digests(corpus))):
        status, _, err = data(
            capsys,
            "get",
            "clinic",
            "--rev",
            revision,
            "--out",
            f"got-{revision}",
            "--repo",
            f"file://{project}",
        )
        assert status == 0, err
        assert digests(tmp_path / f"got-{revision}") == wanted
        # No clone and no speech stays among the temporary files.
        assert list(scratch.iterdir()) == []


def test_a_missing_object_is_named(
    s3, project: Path, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    set_up(capsys, s3, bucket)
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    shell(project, "dvc", "push")
    lost = "part/21/7/21-7-0001.flac"
    md5 = hashlib.md5((corpus / lost).read_bytes(), usedforsecurity=False).hexdigest()
    client = s3.client()
    client.delete_object(Bucket=bucket, Key=f"voxveil/files/md5/{md5[:2]}/{md5[2:]}")
    monkeypatch.chdir(tmp_path)
    status, _, err = data(
        capsys, "get", "clinic", "--rev", "main", "--out", "got", "--repo", f"file://{project}"
    )
    line = one_line(err)
    assert status == 1 and f"data/clinic/{lost}" in line and md5 in line
    assert not (tmp_path / "got").exists()
    assert not list(tmp_path.glob(".got*"))


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong-secret", "the secret key does not fit the access key"),
        ("AWS_ACCESS_KEY_ID", "wrong-key", "the access key is not known there"),
    ],
)
def test_wrong_keys_are_one_line(
    s3, project: Path, bucket: str, tmp_path: Path, capsys, monkeypatch, variable: str, value: str, said: str
) -> None:
    before = (project / ".dvc/config").read_text()
    monkeypatch.setenv(variable, value)
    status, _, err = data(capsys, "init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", s3.endpoint)
    line = one_line(err)
    assert status == 1 and said in line and s3.endpoint in line and "wrong-secret" not in line
    assert (project / ".dvc/config").read_text() == before
    monkeypatch.setenv(variable, s3.environment[variable])
    set_up(capsys, s3, bucket)
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    shell(project, "dvc", "push")
    monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    status, _, err = data(
        capsys, "get", "clinic", "--rev", "main", "--out", "got", "--repo", f"file://{project}"
    )
    assert status == 1 and "wrong-secret" not in one_line(err)
    assert not (tmp_path / "got").exists()


def test_no_permission_is_one_line(
    s3, project: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = s3.client()
    client.create_bucket(Bucket=bucket)
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [denied]}
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    status, _, err = data(capsys, "init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", s3.endpoint)
    assert status == 1 and "cannot write to it: no permission" in one_line(err)
    assert "team" not in (project / ".dvc/config").read_text()


def test_a_wrong_endpoint_is_one_line(
    s3, project: Path, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    away = "http://127.0.0.1:9"
    status, _, err = data(capsys, "init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", away)
    assert status == 1 and "wrong endpoint, or the server is away" in one_line(err) and away in err
    set_up(capsys, s3, bucket)
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert data(capsys, "add", "clinic", str(corpus))[0] == 0
    shell(project, "dvc", "push")
    config = project / ".dvc/config"
    config.write_text(config.read_text().replace(s3.endpoint, away))
    commit(project, "one")
    monkeypatch.chdir(tmp_path)
    status, _, err = data(
        capsys, "get", "clinic", "--rev", "main", "--out", "got", "--repo", f"file://{project}"
    )
    assert status == 1 and away in one_line(err)
    assert not (tmp_path / "got").exists()


def test_a_server_that_never_answers_is_given_up(
    project: Path, bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        status, _, err = data(capsys, "init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", address)
        assert status == 1 and address in one_line(err)
