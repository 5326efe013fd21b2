"""Reading outputs from an S3 store: keys, endpoints, and one clear line where something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from s3_server import Store

from voxveil.kubeflow.fan_in import collect, location
from voxveil.kubeflow.store import check_reachable, fetch, parse_location
from voxveil.runtime.atomic import write_text
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri

pytest.importorskip("boto3", reason="needs the data extra")


def put(store: Store, folder: Path, address: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            store.objects[f"{address}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()


def output(folder: Path, stage: str, system: str) -> str:
    for name in ("a.txt", "b/c d.txt", "b/d.txt"):
        write_text(folder / name, f"{stage} {system} {name}")
    return finish(folder, stage, system).digest


def test_outputs_come_from_the_store_whole_and_verified(
    store: Store, clean: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    entries = []
    for system, scheme in (("anon", "s3"), ("original", "minio")):
        digest = output(tmp_path / system, "evaluate", system)
        put(store, tmp_path / system, f"runs/v2/artifacts/{system}/metrics")
        store.objects[f"runs/v2/artifacts/{system}/metrics-of-another/x.txt"] = b"not ours"
        entries.append(location(system, f"{scheme}://runs/v2/artifacts/{system}/metrics", digest))
    collect(entries, tmp_path / "in", "metrics", ["original", "anon"])
    found = {path.relative_to(tmp_path / "in").as_posix() for path in (tmp_path / "in").rglob("*.txt")}
    assert found == {f"{s}/{n}" for s in ("anon", "original") for n in ("a.txt", "b/c d.txt", "b/d.txt")}


def test_the_query_of_a_pipeline_root_is_never_part_of_a_key(store: Store, tmp_path: Path) -> None:
    digest = output(tmp_path / "made", "evaluate", "anon")
    put(store, tmp_path / "made", "runs/root/metrics")
    host = store.url.removeprefix("http://")
    uri = f"s3://runs/root/metrics?endpoint={host}&disableSSL=true&s3ForcePathStyle=true&region=eu-west-1"
    collect([location("anon", uri, digest)], tmp_path / "in", "metrics", ["anon"])
    assert all(request.startswith("/runs") for request in store.requests)
    assert not any("endpoint" in request or "%3F" in request for request in store.requests)


def test_a_changed_object_is_refused(store: Store, clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    digest = output(tmp_path / "made", "evaluate", "anon")
    put(store, tmp_path / "made", "runs/metrics")
    store.objects["runs/metrics/a.txt"] = b"changed"
    with pytest.raises(InputError, match="a.txt changed"):
        collect([location("anon", "s3://runs/metrics", digest)], tmp_path / "in", "metrics", ["anon"])


@pytest.mark.parametrize("key", ["../../../escape.txt", "b/../../escape.txt"])
def test_an_object_that_would_leave_its_folder_is_refused(
    store: Store, clean: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    store.objects[f"runs/metrics/{key}"] = b"x"
    with pytest.raises(InputError, match="would be written outside its folder"):
        fetch("s3://runs/metrics", tmp_path / "in" / "deep")
    assert not list(tmp_path.rglob("escape.txt"))


def test_nothing_there_says_so(store: Store, clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    with pytest.raises(InputError, match="s3://runs/none: nothing is stored there"):
        fetch("s3://runs/none", tmp_path / "in")


def test_a_server_that_is_away_is_one_line(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    clean.setenv("AWS_ACCESS_KEY_ID", "key")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    clean.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(InputError, match=r"s3://runs/x: cannot be read \(.*127.0.0.1:9.*\)") as caught:
        fetch("s3://runs/x", tmp_path / "in")
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_said_before_any_work(clean: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="minio://b/k: needs the server's address; set AWS_ENDPOINT_URL"):
        check_reachable("minio://b/k")
    with pytest.raises(InputError, match="s3://b/k: needs a region; set AWS_REGION"):
        check_reachable("s3://b/k")
    with pytest.raises(InputError, match="no credentials; set AWS_ACCESS_KEY_ID"):
        check_reachable("s3://b/k?region=eu-west-1")
    clean.setenv("AWS_ACCESS_KEY_ID", "key")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    check_reachable("s3://b/k?region=eu-west-1")
    check_reachable("/a/local/path")


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("s3://b/a/k", S3Uri("b", "a/k")),
        ("s3://b/a/k/?region=x", S3Uri("b", "a/k", "", "x")),
        (
            "minio://b/k?endpoint=host:9000&disableSSL=true",
            S3Uri("b", "k", "http://host:9000", scheme="minio"),
        ),
        ("minio://b/k?endpoint=https://host", S3Uri("b", "k", "https://host", scheme="minio")),
        ("/a/b", None),
        ("file:///a/b", None),
    ],
)
def test_locations(uri: str, place: S3Uri | None) -> None:
    assert parse_location(uri) == place


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("gs://b/k", "must be a path or a URI of s3, minio or file, got gs"),
        ("s3://bucket", "must be s3://BUCKET/PREFIX"),
        ("s3:///key", "must be s3://BUCKET/PREFIX"),
        ("s3://b/k?anonymous=true", "unknown option 'anonymous'; known: "),
    ],
)
def test_wrong_locations_are_named(uri: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        parse_location(uri)
