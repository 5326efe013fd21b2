"""``data init``: every refusal of a server becomes one line, and nothing is configured."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from made_datasets import shell
from voxveil.cli.main import main
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri


@dataclass
class Server:
    """Answers every request with one S3 error."""

    status: int = 403
    code: str = "AccessDenied"
    message: str = "Access Denied"
    body: str = ""
    url: str = ""
    seen: list[str] = field(default_factory=list)


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-mine")
    (project / ".dvc/config").write_text("[core]\n    analytics = false\n")

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            state.seen.append(f"{self.command} {self.path} {self.headers.get('Authorization', '')}")
            body = state.body or (
                f"<?xml version='1.0'?><Error><Code>{state.code}</Code>"
                f"<Message>{state.message}</Message></Error>"
            )
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{http.server_port}"
    yield state
    http.shutdown()


def init(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["data", "init", *arguments]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and "a-secret-of-mine" not in err
    return err


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AccessDenied", "no permission"),
        (403, "InvalidAccessKeyId", "the access key is not known there"),
        (403, "SignatureDoesNotMatch", "the secret key does not fit"),
        (400, "AuthorizationHeaderMalformed", "wrong region"),
        (400, "ExpiredToken", "the session token has expired"),
        (400, "InvalidBucketName", "not a valid bucket name"),
        (501, "NotImplemented", "the server cannot do this"),
    ],
)
def test_a_refusal_is_one_line(
    server: Server, project: Path, capsys: pytest.CaptureFixture[str], status: int, code: str, said: str
) -> None:
    server.status, server.code = status, code
    before = (project / ".dvc/config").read_text()
    line = init(capsys, "--remote", "s3://speech/voxveil", "--endpoint", server.url, "--region", "eu-north-1")
    assert said in line and server.url in line and "eu-north-1" in line
    assert (project / ".dvc/config").read_text() == before


def test_a_server_of_another_kind_and_none_are_one_line(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.status, server.body = 200, "<html>welcome"
    assert "does not speak S3" in init(capsys, "--remote", "s3://speech/voxveil", "--endpoint", server.url)
    line = init(capsys, "--remote", "s3://speech/voxveil", "--endpoint", "http://127.0.0.1:9")
    assert "wrong endpoint, or the server is away" in line and "http://127.0.0.1:9" in line


def test_keys_that_are_absent(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert "no keys; set AWS_ACCESS_KEY_ID" in init(
        capsys, "--remote", "s3://speech/voxveil", "--endpoint", server.url
    )
    assert server.seen == []


def test_keys_of_the_local_configuration_are_used(
    server: Server, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = "['remote \"team\"']\n    access_key_id = local-key\n    secret_access_key = s\n"
    (project / ".dvc/config.local").write_text(local)
    init(capsys, "--remote", "s3://speech/voxveil", "--endpoint", server.url)
    assert "Credential=local-key/" in server.seen[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--remote", "speech"], "must be s3://BUCKET/PREFIX"),
        (["--remote", "s3://speech"], "must be s3://BUCKET/PREFIX"),
        (["--remote", "s3://speech/x", "--endpoint", "localhost"], "must start with http"),
        (["--remote", "s3://speech/x", "--deleted-days", "0"], "--deleted-days 0: must be at least 1"),
        (["--remote", "s3://speech/x", "--region", "eu west"], "region"),
    ],
)
def test_wrong_arguments_ask_no_server(
    server: Server, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in init(capsys, *arguments)
    assert server.seen == []


def test_secrets_that_git_keeps_stop_it(
    server: Server, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell(project, "dvc", "remote", "add", "team", "s3://other/place")
    assert "give another --name" in init(capsys, "--remote", "s3://speech/voxveil", "--endpoint", server.url)
    shell(project, "dvc", "remote", "modify", "team", "secret_access_key", "a-secret-of-mine")
    line = init(capsys, "--remote", "s3://other/place", "--endpoint", server.url)
    assert "has secret_access_key, and Git keeps this file" in line
    assert server.seen == []


def test_locations() -> None:
    assert S3Uri.parse("s3://speech/a/b/") == S3Uri("speech", "a/b")
    with pytest.raises(InputError):
        S3Uri.parse("s3://speech/a?b")
