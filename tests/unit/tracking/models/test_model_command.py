"""``voxveil model`` with the registry in SQLite and the bytes in DVC; S3 is tested in tests/services."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from made_speech import speak, write_bundles, write_models
from voxveil.anonymize.bundle import read_bundle
from voxveil.cli.main import main
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.done import file_sha256
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

pytest.importorskip("dvc", reason="dvc is not installed")

DVC = str(Path(sys.executable).with_name("dvc"))


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose folder ``models`` DVC tracks, with a clean commit."""
    folder = tmp_path_factory.mktemp("checkout")
    write_models(folder.parent / "parts")
    write_bundles(folder / "models", folder.parent / "parts")
    git(folder, "init", "-q")
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    for command in (["init", "-q"], ["add", "-q", "models"]):
        subprocess.run([DVC, *command], cwd=folder, check=True, capture_output=True, env=environment)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "models")
    return folder


@pytest.fixture
def team(tracked: Path, empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own registry and cache; returns the checkout."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_TRACKING", "MLFLOW_EXPERIMENT", "MLFLOW_RUN", "DVC_", "KFP_")):
            monkeypatch.delenv(name)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("VOXVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.chdir(tmp_path)
    return tracked


def register(team: Path, *words: str, system: str = "anon_dp") -> int:
    return main(["model", "register", str(team / "models" / system), "--name", "anonymizer", *words])


def client():
    return connect(resolve_store()).client


def said_once(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("voxveil: error")]
    return line


def test_a_version_is_a_pointer_with_checksum_and_promise(team: Path, capsys) -> None:
    assert register(team, "--alias", "champion") == 0
    version = client().get_model_version_by_alias("anonymizer", "champion")
    digest = file_sha256(team / "models/anon_dp" / SUMS)
    tags = version.tags
    assert tags["voxveil.bundle"] == digest
    assert tags["voxveil.corpus"] == "made"
    assert tags["voxveil.data_revision"] == "ab" * 32
    assert (tags["voxveil.epsilon.pitch"], tags["voxveil.unit.pitch"]) == ("10", "utterance")
    assert (tags["voxveil.epsilon.content"], tags["voxveil.unit.content"]) == ("10", "vector")
    assert tags["voxveil.mechanism.content"] == "laplace_l1"
    assert not [name for name in tags if "delta" in name]
    assert tags["voxveil.address"].endswith(f"@{git(team, 'rev-parse', 'HEAD')}:models/anon_dp")
    files = [file.path for file in client().list_artifacts(version.run_id, "model")]
    assert files == ["model/SHA256SUMS", "model/bundle.json", "model/pointer.json"]
    stored = list(Path("mlartifacts").rglob("*"))
    assert not [path for path in stored if path.suffix in (".pkl", ".safetensors", ".npz")]
    assert "anonymizer version 1, alias champion at sqlite:///" in capsys.readouterr().out


def test_registering_again_finds_the_version_and_moves_the_alias(team: Path) -> None:
    assert register(team) == 0
    assert register(team, system="anon") == 0
    assert register(team, "--alias", "champion") == 0
    versions = client().search_model_versions("name = 'anonymizer'")
    assert sorted(int(version.version) for version in versions) == [1, 2]
    assert client().get_model_version_by_alias("anonymizer", "champion").version in (1, "1")
    assert {v.tags["voxveil.epsilon.content"] for v in versions} == {"10", "inf"}


def test_anonymize_takes_the_champion(team: Path, tmp_path: Path, capsys) -> None:
    assert register(team, "--alias", "champion") == 0
    soundfile.write(tmp_path / "a.wav", speak(120.0, 8_000)[0], 16_000)
    words = ["anonymize", "a.wav", "out", "--threads", "1", "--model"]
    assert main([*words, "models:/anonymizer@champion"]) == 0
    assert "anon_dp: 1 recordings anonymized" in capsys.readouterr().out
    # The registered model and the folder are one and the same: nothing is released again.
    assert main([*words, "models:/anonymizer/1"]) == 0
    assert main([*words, str(team / "models/anon_dp")]) == 0
    assert capsys.readouterr().out.count("nothing to do") == 2


def test_a_damaged_cache_is_fetched_again(team: Path, capsys) -> None:
    assert register(team, "--alias", "champion") == 0
    capsys.readouterr()
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    weights = folder / "vocoder/model.safetensors"
    right = weights.read_bytes()
    weights.write_bytes(right[:-1] + b"x")
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 0
    assert weights.read_bytes() == right
    assert read_bundle(folder).system == "anon_dp"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("file", ["SHA256SUMS", "bundle.json", "pointer.json"])
def test_a_changed_artifact_is_refused(team: Path, capsys, file: str) -> None:
    assert register(team, "--alias", "champion") == 0
    (path,) = Path("mlartifacts").rglob(file)
    text = path.read_text()
    path.write_text(
        text.replace("anon_dp", "anon_pc") if file == "bundle.json" else text.replace("0", "1", 1)
    )
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 2
    assert "models:/anonymizer@champion" in said_once(capsys)
    path.unlink()
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 2
    assert f"{file} is missing" in said_once(capsys)
    assert not Path("cache").exists()


def test_bytes_that_are_gone_are_named(team: Path, tmp_path: Path, capsys) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(team, copy, symlinks=True)
    assert register(copy, "--alias", "champion") == 0
    shutil.rmtree(copy / ".dvc/cache")
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 2
    said = said_once(capsys)
    assert "its outputs cannot be read" in said
    assert "'git push' and 'dvc push'" in said
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_commit_that_was_not_pushed_is_warned_of(team: Path, tmp_path: Path, capsys) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(team, copy, symlinks=True)
    git(tmp_path, "init", "-q", "--bare", "shared.git")
    git(copy, "remote", "add", "origin", str(tmp_path / "shared.git"))
    commit = git(copy, "rev-parse", "HEAD")
    assert register(copy) == 0
    assert (
        f"warning: commit {commit[:12]} is on no branch of {tmp_path}/shared.git" in capsys.readouterr().err
    )
    assert main(["model", "fetch", "models:/anonymizer/1"]) == 2
    said = said_once(capsys)
    assert f"error: {commit}: " in said
    assert "'git push' and 'dvc push'" in said
    git(copy, "push", "-q", "origin", "HEAD")
    assert register(copy) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_bundle_that_no_commit_holds_is_not_registered(team: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(team / "models/anon", tmp_path / "loose")
    assert main(["model", "register", "loose", "--name", "x"]) == 2
    assert "in no DVC repository" in said_once(capsys)
    copy = tmp_path / "copy"
    shutil.copytree(team, copy, symlinks=True)
    shutil.rmtree(copy / "models/anon_dp")
    shutil.copytree(team / "models/anon", copy / "models/anon_dp")
    assert main(["model", "register", str(copy / "models/anon_dp"), "--name", "x"]) == 2
    assert "is not what commit" in said_once(capsys)
    assert not client().search_registered_models()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fetch", "models:/anonymizer@nobody"], "no such model, alias or version"),
        (["fetch", "models:/nothing/1"], "no such model, alias or version"),
        (["fetch", "models:/theirs/1"], "was not registered by 'voxveil model register'"),
        (["fetch", "models:/anonymizer"], "must be models:/NAME@ALIAS"),
        (["fetch", "models:/anonymizer@champion", "--system", "anon"], "--system must be anon_dp"),
        (["fetch", "elsewhere"], "--model elsewhere: not a model bundle"),
        (["register", "elsewhere", "--name", "x"], "elsewhere: not a model bundle"),
        (["register", "{bundle}", "--name", "a/b"], "--name 'a/b'"),
        (["register", "{bundle}", "--name", "x", "--to", "bucket"], "must be s3://BUCKET/PREFIX"),
    ],
)
def test_a_wrong_argument_is_one_line(team: Path, capsys, words: list[str], said: str) -> None:
    assert register(team, "--alias", "champion") == 0
    client().create_registered_model("theirs")
    client().create_model_version("theirs", "somewhere")
    assert main(["model", *(word.format(bundle=team / "models/anon") for word in words)]) == 2
    assert said in said_once(capsys)
    assert not list(Path("cache").rglob("*.json"))


def test_looking_makes_no_registry(team: Path, capsys) -> None:
    Path("mlflow.db").unlink()
    assert main(["model", "fetch", "models:/anonymizer@champion"]) == 2
    assert "there is no MLflow store" in said_once(capsys)
    assert not Path("mlflow.db").exists()
