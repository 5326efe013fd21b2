"""``voxveil stack`` where there is no stack, and where the server does not take the kept password."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.tracking.servers.local import Stack
from voxveil.tracking.servers.server import PasswordError, probe
from voxveil.tracking.servers.settings import StackError

RIGHT = "correct horse battery"


class Door(BaseHTTPRequestHandler):
    """Lets one password in."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        self.send_response(200 if given == f"admin:{RIGHT}" else 401)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def door() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("action", ["gc", "migrate"])
def test_without_a_stack_the_folder_and_the_variable_are_named(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("VOXVEIL_STACK", "VOXVEIL_DB_HOST", "VOXVEIL_DB_HOST_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["stack", action]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ".voxveil/stack: holds no stack" in line
    assert "VOXVEIL_DB_HOST" in line
    assert not list(tmp_path.iterdir())


def test_a_password_of_another_time_is_said_at_once(door: int, tmp_path: Path) -> None:
    probe(f"http://127.0.0.1:{door}", "admin", RIGHT)
    with pytest.raises(PasswordError, match="refuses user admin .status 401."):
        probe(f"http://127.0.0.1:{door}", "admin", "wrong")
    stack = Stack(tmp_path, {"mlflow": door})
    with pytest.raises(StackError, match="does not take the password of admin") as error:
        stack.mlflow._ready()
    kept = tmp_path / "passwords.json"
    assert str(kept) in str(error.value)
    content = json.loads(kept.read_text())
    assert content["admin"] not in str(error.value)
    kept.write_text(json.dumps({**content, "admin": RIGHT}))
    assert Stack(tmp_path).mlflow._ready()
    # A server that is away is waited for.
    assert not Stack(tmp_path, {"mlflow": 9}).mlflow._ready()
