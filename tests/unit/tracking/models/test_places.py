"""Addresses of models: written, read back, and refused where they would lead elsewhere."""

from __future__ import annotations

import pytest

from voxveil.runtime.checksums import parse_sums
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri
from voxveil.tracking.models.addresses import DVCAddress, Pointer, RegistryAddress, parse_address
from voxveil.tracking.store import without_credentials

SHA = "ab" * 32
COMMIT = "0f" * 20


@pytest.mark.parametrize("text", ["s3://bucket/a/b", "models:/anonymizer@champion", "models:/anonymizer/3"])
def test_a_place_reads_back(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("repository", ["git@example.org:team/x.git", "https://example.org/x.git", "/data/x"])
def test_a_dvc_place_reads_back(repository: str) -> None:
    place = DVCAddress(repository, COMMIT, "models/anon_dp")
    assert DVCAddress.parse(str(place)) == place


@pytest.mark.parametrize(
    "text",
    ["s3://bucket", "s3:///x", "s3://b/x?region=y", "models:/x", "models:/x@", "models:/a/b", "https://x/y"],
)
def test_a_malformed_place_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=text.split("?")[0]):
        parse_address(text)


def test_a_path_is_a_path() -> None:
    assert parse_address("models/anon_dp") is None
    assert parse_address("./models:/x") is None


@pytest.mark.parametrize("address", [S3Uri("b", "p/q"), DVCAddress("/data/x", COMMIT, "models/anon")])
def test_a_pointer_reads_back(address) -> None:
    pointer = Pointer("anon", SHA, address, 12)
    assert Pointer.from_json(pointer.to_json(), "here") == pointer


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"sha256sums": "short"}, {"address": 3}, {"address": "file:///etc"}, {"bytes": "many"}],
)
def test_a_wrong_pointer_is_refused(change: dict) -> None:
    content = {**Pointer("anon", SHA, S3Uri("b", "p"), 12).to_json(), **change}
    with pytest.raises(InputError):
        Pointer.from_json(content, "pointer.json")


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside", "a/../../b", "a\\b", ""])
def test_a_file_outside_the_bundle_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a list of SHA-256 digests"):
        parse_sums(f"{SHA}  bundle.json\n{SHA}  {name}\n", "here")


@pytest.mark.parametrize("text", ["", f"{SHA}  pool.npz\n", f"{SHA[:-1]}g  bundle.json\n"])
def test_sums_must_name_the_bundle(text: str) -> None:
    with pytest.raises(InputError):
        parse_sums(text, "here", "bundle.json")


def test_no_password_of_a_remote_is_published() -> None:
    assert without_credentials("https://ann:s3cret@example.org/x.git") == "https://example.org/x.git"
    assert without_credentials("git@example.org:x.git") == "git@example.org:x.git"


def test_a_registry_place_is_either() -> None:
    assert RegistryAddress.parse("models:/x@a") == RegistryAddress("x", "a", "")
    assert RegistryAddress.parse("models:/x/12") == RegistryAddress("x", "", "12")
