"""Reading outputs from an S3 store: keys, endpoints, and one clear line where something is missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from voxveil.errors import InputError
from voxveil.kubeflow.fan_in import collect, location
from voxveil.kubeflow.store import Location, check_reachable, fetch, parse_location
from voxveil.storage.atomic import write_text
from voxveil.storage.done import finish

pytest.importorskip("boto3", reason="needs the data extra")


class Store(ThreadingHTTPServer):
    """As much of S3 as a reader needs: ListObjectsV2 in pages of two, GET and HEAD."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Store

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.requests.append(self.path)
        if "list-type" in url.query:
            self._answer(200, self._listing(parse_qs(url.query)).encode())
            return
        body = self.server.objects.get(unquote(url.path).lstrip("/"))
        self._answer(404 if body is None else 200, body or b"")

    def _listing(self, query: dict[str, list[str]]) -> str:
        bucket = unquote(urlsplit(self.path).path).strip("/")
        prefix = f"{bucket}/{query['prefix'][0]}"
        keys = sorted(key for key in self.server.objects if key.startswith(prefix))
        start = int(query.get("continuation-token", ["0"])[0])
        page, more = keys[start : start + 2], start + 2 < len(keys)
        contents = "".join(
            f"<Contents><Key>{escape(key[len(bucket) + 1 :])}</Key></Contents>" for key in page
        )
        token = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if more else ""
        truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        return f"<ListBucketResult>{truncated}{token}{contents}</ListBucketResult>"

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    import os

    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return monkeypatch


@pytest.fixture
def store(clean: pytest.MonkeyPatch) -> Iterator[Store]:
    server = Store()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    clean.setenv("AWS_ACCESS_KEY_ID", "key")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    yield server
    server.shutdown()
    server.server_close()


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
        ("s3://b/a/k", Location("b", "a/k")),
        ("s3://b/a/k/?region=x", Location("b", "a/k", "", "x")),
        ("minio://b/k?endpoint=host:9000&disableSSL=true", Location("b", "k", "http://host:9000")),
        ("minio://b/k?endpoint=https://host", Location("b", "k", "https://host")),
        ("/a/b", None),
        ("file:///a/b", None),
    ],
)
def test_locations(uri: str, place: Location | None) -> None:
    assert parse_location(uri) == place


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("gs://b/k", "must be a path or a URI of s3, minio or file, got gs"),
        ("s3://bucket", "must be s3://BUCKET/KEY"),
        ("s3:///key", "must be s3://BUCKET/KEY"),
        ("s3://b/k?anonymous=true", "unknown option 'anonymous'; known: "),
    ],
)
def test_wrong_locations_are_named(uri: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        parse_location(uri)
