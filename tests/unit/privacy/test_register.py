"""The register loses nothing, refuses to overwrite, and where it is away nothing is released."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from made_rights import bound_by_permissions
from voxveil.privacy.ledger import Ledger, registered
from voxveil.privacy.register import FolderRegister, S3Register, open_register, register_location
from voxveil.runtime.errors import PrivacyError

from .ledger_entries import make_entry

NAME = "0123456789abcdef" * 2


def test_the_location_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.delenv("VOXVEIL_LEDGER", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert register_location() == str(tmp_path / "ledger")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    (tmp_path / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep/er")
    assert register_location() == str(tmp_path / "ledger")
    monkeypatch.setenv("DVC_ROOT", "/project")
    assert register_location() == "/project/ledger"
    monkeypatch.setenv("VOXVEIL_LEDGER", "s3://bucket/releases")
    assert isinstance(open_register(), S3Register)
    assert open_register().location == "s3://bucket/releases"


@pytest.mark.parametrize("place", ["http://host/x", "gs://bucket/x", "s3://", "s3:///x", "s3://bucket/x?y"])
def test_another_kind_of_place_is_refused(place: str) -> None:
    with pytest.raises(PrivacyError, match="nothing was released"):
        open_register(place)


def test_an_object_is_stored_whole_and_never_overwritten(register: FolderRegister, tmp_path: Path) -> None:
    register.create(NAME, b"first")
    with pytest.raises(PrivacyError, match="exists already"):
        register.create(NAME, b"second")
    assert register.read_all() == {NAME: b"first"}
    assert [path.name for path in (tmp_path / "register").iterdir()] == [f"{NAME}.json"]


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 32, NAME + "0", NAME + "\n"])
def test_a_name_that_is_no_release_id_is_refused(register: FolderRegister, name: str) -> None:
    with pytest.raises(PrivacyError, match="release id"):
        register.create(name, b"x")


def test_files_that_are_no_objects_are_passed_over(register: FolderRegister, tmp_path: Path) -> None:
    register.create(NAME, b"x")
    (tmp_path / "register" / f".{NAME}.1.partial").write_bytes(b"half")
    (tmp_path / "register" / "README").write_text("the register")
    assert register.names() == [NAME]


@pytest.mark.parametrize("kind", ["a file", "no parent"])
def test_an_unwritable_register_releases_nothing(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place" if kind == "a file" else tmp_path / "away" / "register"
    if kind == "a file":
        place.write_text("not a folder")
    ledger = Ledger.open(purpose="release", system="anon_dp", register=FolderRegister(place))
    with pytest.raises(PrivacyError, match="register .*place|register .*away"):
        ledger.announce([make_entry()])
    assert not place.is_dir()


def test_a_read_only_register_releases_nothing(tmp_path: Path) -> None:
    register = FolderRegister(tmp_path)
    with bound_by_permissions():
        register.create(NAME, b"x")
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(PrivacyError, match=r"cannot be written \(Permission denied\)"):
                register.create(NAME[::-1], b"x")
        finally:
            tmp_path.chmod(0o700)
    assert register.names() == [NAME]
    assert [path.name for path in tmp_path.iterdir()] == [f"{NAME}.json"]


def announce_many(place: str, worker: int) -> list[str]:
    ledger = Ledger.open(purpose="evaluation", system="anon_dp", register=open_register(place))
    return [ledger.announce([make_entry(f"utt-{worker}-{i}")]).id for i in range(10)]


def test_eight_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "register")
    with multiprocessing.get_context("fork").Pool(8) as pool:
        made = pool.starmap(announce_many, [(place, worker) for worker in range(8)])
    ids = [name for names in made for name in names]
    found = registered(open_register(place))
    assert len(set(ids)) == 80
    assert {release.id for release in found} == set(ids)
    assert {release.entries[0].input for release in found} == {
        f"utt-{worker}-{i}" for worker in range(8) for i in range(10)
    }


def test_a_run_killed_after_announcing_stays_charged(tmp_path: Path) -> None:
    """kill -9 between the announcement and the first sample of noise."""
    script = textwrap.dedent(
        """
        import hashlib, os, signal, sys
        from voxveil.privacy import Entry, LaplaceCube, Ledger
        loss = LaplaceCube(1.0).loss_for((16, 100))
        entry = Entry("utt", hashlib.sha256(b"utt").hexdigest(), 100, {"pitch": loss})
        print(Ledger.open(purpose="release", system="anon_dp").announce([entry]).id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    environment = {**os.environ, "VOXVEIL_LEDGER": str(tmp_path / "register")}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert result.returncode == -signal.SIGKILL, result.stderr
    (release,) = registered(FolderRegister(tmp_path / "register"))
    assert release.id == result.stdout.decode().strip()
    assert release.epsilon == 1.0


class FakeS3(BaseHTTPRequestHandler):
    """PUT with If-None-Match, GET and list, as S3 answers them; one fault at a time."""

    objects: dict[str, bytes]
    fault: str

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.fault == "denied":
            self._answer(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        elif self.path in self.objects:
            assert self.headers["If-None-Match"] == "*"
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self.objects[self.path] = b"lost" if self.fault == "corrupt" else body
            # The answer to a write that succeeded is lost: the client tries again.
            lost, type(self).fault = (
                self.fault == "answer lost",
                "" if self.fault == "answer lost" else self.fault,
            )
            self._answer(500 if lost else 200, b"")

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "list-type" not in query:
            self._answer(200 if url.path in self.objects else 404, self.objects.get(url.path, b""))
            return
        prefix = f"{url.path.rstrip('/')}/{query['prefix'][0]}"
        keys = sorted(path.split("/", 2)[2] for path in self.objects if path.startswith(prefix))
        items = "".join(f"<Contents><Key>{escape(unquote(key))}</Key></Contents>" for key in keys)
        self._answer(
            200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode()
        )

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeS3]]:
    pytest.importorskip("boto3", reason="boto3 is not installed")
    handler = type("Handler", (FakeS3,), {"objects": {}, "fault": ""})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield handler
    server.shutdown()
    server.server_close()


def test_s3_stores_one_object_per_release(s3: type[FakeS3]) -> None:
    register = open_register("s3://bucket/team/releases/")
    ledger = Ledger.open(purpose="release", system="anon_dp", register=register)
    first, second = (ledger.announce([make_entry(name)]) for name in ("one", "two"))
    assert sorted(s3.objects) == sorted(f"/bucket/team/releases/{r.id}.json" for r in (first, second))
    assert json.loads(s3.objects[f"/bucket/team/releases/{first.id}.json"]) == first.to_json()
    assert {release.id for release in registered(register)} == {first.id, second.id}
    with pytest.raises(PrivacyError, match="exists already"):
        register.create(first.id, b"other")
    assert json.loads(s3.objects[f"/bucket/team/releases/{first.id}.json"]) == first.to_json()


def test_s3_a_lost_answer_is_no_failure(s3: type[FakeS3]) -> None:
    s3.fault = "answer lost"
    open_register("s3://bucket").create(NAME, b"content")
    assert s3.objects == {f"/bucket/{NAME}.json": b"content"}


@pytest.mark.parametrize(("fault", "message"), [("denied", "AccessDenied"), ("corrupt", "exists already")])
def test_s3_that_did_not_keep_the_object_releases_nothing(s3: type[FakeS3], fault: str, message: str) -> None:
    s3.fault = fault
    with pytest.raises(
        PrivacyError, match=f"{message}.*; nothing was released|{message}; nothing was released"
    ):
        open_register("s3://bucket/x").create(NAME, b"content")


def test_s3_out_of_reach_is_one_line_that_names_the_endpoint(
    s3: type[FakeS3], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(PrivacyError, match=r"127\.0\.0\.1:9.*nothing was released") as caught:
        open_register("s3://bucket/x").create(NAME, b"content")
    assert "\n" not in str(caught.value)
