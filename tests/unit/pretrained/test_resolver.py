"""One resolver for models: a folder, S3 or the registry, for bundles and imported models alike."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("boto3")

from botocore.exceptions import ClientError

from made_pretrained import import_ecapa
from voxveil.cli.main import main
from voxveil.config.networks import TrainAttackerParams
from voxveil.pretrained.folder import read_model
from voxveil.runtime import model_cache
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.errors import IncompleteInputError, InputError, VoxveilError
from voxveil.runtime.s3 import S3Uri
from voxveil.stages.train_attacker import with_local_models
from voxveil.tracking.client import connect
from voxveil.tracking.models import fetching, storing
from voxveil.tracking.models.contents import locate_model
from voxveil.tracking.models.fetching import locate_pretrained
from voxveil.tracking.models.registering import register_model
from voxveil.tracking.store import resolve_store

PARAMETER = "train_attacker.pretrained"


class Bucket(dict[str, bytes]):
    """An S3 client whose objects, by key, are in memory."""

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:
        self[f"{Bucket}/{Key}"] = Body

    def get_object(self, Bucket: str, Key: str) -> dict[str, io.BytesIO]:
        if f"{Bucket}/{Key}" not in self:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self[f"{Bucket}/{Key}"])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_ecapa(tmp_path_factory.mktemp("models") / "ecapa")


@pytest.fixture
def bucket(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An S3 store in memory, and a cache and a registry of the test's own."""
    bucket = Bucket()
    for module in (model_cache, fetching, storing):
        monkeypatch.setattr(module, "s3_client", lambda: bucket)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv("VOXVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.chdir(tmp_path)
    return bucket


def register(folder: Path) -> S3Uri:
    address = storing.upload(folder, S3Uri.parse("s3://b/models"))
    register_model(folder, "encoder", address, resolve_store(), "judge")
    return address


def test_a_folder_s3_and_the_registry_give_the_same_model(folder: Path, bucket: Bucket) -> None:
    address = register(folder)
    wanted = read_model(folder)
    for text in (str(folder), str(address), "models:/encoder@judge", "models:/encoder/1"):
        found = locate_pretrained(text, "speaker", PARAMETER)
        assert (found.digest, found.architecture) == (wanted.digest, "speechbrain_ecapa")
        params = with_local_models(TrainAttackerParams(kinds="ecapa,pretrained", pretrained=text))
        assert read_model(Path(params.pretrained)).digest == wanted.digest
    assert with_local_models(TrainAttackerParams(kinds="ecapa", pretrained="nowhere")).pretrained == "nowhere"


def test_licence_and_source_are_tags_of_the_version(folder: Path, bucket: Bucket) -> None:
    register(folder)
    version = connect(resolve_store()).client.get_model_version_by_alias("encoder", "judge")
    tags = {name: version.tags[f"voxveil.{name}"] for name in ("licence", "source", "kind", "digest")}
    model = read_model(folder)
    assert tags == {"licence": "MIT", "source": model.source, "kind": "speaker", "digest": model.digest}
    assert "Imported model **speechbrain_ecapa**" in version.description


def test_the_command_registers_shows_and_fetches(folder: Path, bucket: Bucket, capsys) -> None:
    words = ["model", "register", str(folder), "--name", "encoder", "--alias", "judge", "--to", "s3://b/m"]
    assert main(words) == 0
    assert main(["model", "show", "models:/encoder@judge"]) == 0
    assert "architecture: speechbrain_ecapa" in capsys.readouterr().out
    assert main(["model", "fetch", "models:/encoder@judge"]) == 0
    assert read_model(Path(capsys.readouterr().out.strip())).digest == read_model(folder).digest


def test_an_imported_model_is_no_bundle(folder: Path, bucket: Bucket) -> None:
    register(folder)
    with pytest.raises(InputError, match="models:/encoder/1: is an imported model, must be a model bundle"):
        locate_model("models:/encoder/1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere", f"{PARAMETER}: nowhere: no such folder"),
        ("s3://b/nowhere", "s3://b/nowhere/SHA256SUMS: missing"),
        ("s3://b", f"{PARAMETER} s3://b: must be s3://BUCKET/PREFIX"),
        (
            "https://x/y",
            f"{PARAMETER} https://x/y: must be a folder, s3://BUCKET/PREFIX or models:/NAME@ALIAS",
        ),
        ("models:/nothing@x", "models:/nothing@x: no such model, alias or version"),
    ],
)
def test_an_absent_model_is_one_line(text: str, message: str, bucket: Bucket) -> None:
    with pytest.raises(VoxveilError) as caught:
        locate_pretrained(text, "speaker", PARAMETER)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_another_kind_and_changed_bytes_are_refused(folder: Path, bucket: Bucket) -> None:
    address = register(folder)
    with pytest.raises(InputError, match=r"transcribe\.recognizer: .*is a model of kind speaker"):
        locate_pretrained("models:/encoder@judge", "recognizer", "transcribe.recognizer")
    shutil.rmtree("cache")
    key = f"b/{address.key('model.safetensors')}"
    bucket[key] = bucket[key][:-1] + b"x"
    for text in (str(address), "models:/encoder@judge"):
        with pytest.raises(IncompleteInputError, match=rf"model\.safetensors: differs from {SUMS}"):
            locate_pretrained(text, "speaker", PARAMETER)
    assert not [path for path in Path("cache").rglob("*") if path.is_file()]
