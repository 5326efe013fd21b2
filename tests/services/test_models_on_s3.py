"""Models whose bytes lie in S3: registered on the team's server, fetched, verified, refused when changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_speech import write_bundles, write_models
from voxveil.anonymize.bundle import read_bundle
from voxveil.cli.main import main
from voxveil.runtime.done import file_sha256
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services

BUCKET = "models"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    write_models(folder / "parts")
    write_bundles(folder / "models", folder / "parts")
    return folder / "models"


@pytest.fixture
def store(s3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An S3 client; the environment points voxveil there, and the cache is the test's own."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VOXVEIL_CACHE", str(tmp_path / "cache"))
    s3.make_bucket(BUCKET)
    return s3.client()


def fetch(*words: str) -> int:
    return main(["model", "fetch", *words])


def error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("voxveil: error")]
    return line


def put(store, bundles: Path, prefix: str, system: str) -> None:
    for path in sorted((bundles / system).rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(bundles / system).as_posix()}"
            store.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())


def test_the_champion_comes_from_s3(team, store, bundles: Path, tmp_path: Path, capsys) -> None:
    words = [
        "model",
        "register",
        str(bundles / "anon_dp"),
        "--name",
        "from-s3",
        "--to",
        f"s3://{BUCKET}/team",
    ]
    assert main([*words, "--alias", "champion"]) == 0
    assert main([*words, "--alias", "champion"]) == 0
    client = connect(resolve_store()).client
    (version,) = client.search_model_versions("name = 'from-s3'")
    address = version.tags["voxveil.address"]
    assert address == f"s3://{BUCKET}/team/{file_sha256(bundles / 'anon_dp/SHA256SUMS')}"
    assert version.tags["voxveil.epsilon.content"] == "10"
    capsys.readouterr()
    assert fetch("models:/from-s3@champion") == 0
    folder = Path(capsys.readouterr().out.strip())
    assert read_bundle(folder).system == "anon_dp"
    assert file_sha256(folder / "pool.npz") == file_sha256(bundles / "anon_dp/pool.npz")
    # Somebody who may write to the bucket, but not to the registry, replaces the whole bundle.
    put(store, bundles, address.removeprefix(f"s3://{BUCKET}/"), "anon")
    assert fetch("models:/from-s3@champion") == 0, "the verified copy serves on"
    (tmp_path / "cache").rename(tmp_path / "old")
    assert fetch("models:/from-s3@champion") == 2
    assert "differs from the registered file" in error(capsys)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_prefix_is_a_model_or_holds_models(store, bundles: Path, capsys) -> None:
    for system in ("anon", "anon_dp"):
        put(store, bundles, f"plain/{system}", system)
    assert fetch(f"s3://{BUCKET}/plain/anon_dp") == 0
    one = capsys.readouterr().out
    assert fetch(f"s3://{BUCKET}/plain", "--system", "anon_dp") == 0
    assert capsys.readouterr().out == one
    assert fetch(f"s3://{BUCKET}/plain") == 2
    assert "it holds anon, anon_dp: choose one by --system" in error(capsys)
    assert fetch(f"s3://{BUCKET}/nowhere") == 2
    assert "not a model bundle" in error(capsys)
    assert fetch("s3://no-such-bucket/x") == 2
    assert "s3://no-such-bucket/x" in error(capsys)


def test_a_missing_or_changed_object_is_named(store, bundles: Path, tmp_path: Path, capsys) -> None:
    put(store, bundles, "broken", "anon_dp")
    weights = store.get_object(Bucket=BUCKET, Key="broken/pitch/model.safetensors")["Body"].read()
    store.put_object(Bucket=BUCKET, Key="broken/pitch/model.safetensors", Body=weights[:-1])
    assert fetch(f"s3://{BUCKET}/broken") == 2
    assert f"s3://{BUCKET}/broken/pitch/model.safetensors: differs from SHA256SUMS" in error(capsys)
    store.delete_object(Bucket=BUCKET, Key="broken/pitch/model.safetensors")
    assert fetch(f"s3://{BUCKET}/broken") == 2
    assert f"s3://{BUCKET}/broken/pitch/model.safetensors: missing" in error(capsys)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9")],
)
def test_a_store_out_of_reach_is_one_line(store, monkeypatch, capsys, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    assert fetch(f"s3://{BUCKET}/plain") == 2
    assert f"s3://{BUCKET}/plain/SHA256SUMS" in error(capsys)
