"""Import from a hub: a local server that speaks the hub's protocol, at one pinned revision."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("torch")
constants = pytest.importorskip("huggingface_hub.constants")

from made_pretrained import small_ecapa
from voxveil.cli.main import main
from voxveil.pretrained.folder import read_model

NAME, REVISION = "owner/ecapa", "c" * 40
CARD = b"---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n"


class Hub(BaseHTTPRequestHandler):
    """Serves the files of one repository at one revision, and notes what was asked for."""

    files: dict[str, bytes]
    asked: list[str]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        file = path.removeprefix(f"/{NAME}/resolve/{REVISION}/")
        rows = [{"type": "file", "path": name, "size": len(data)} for name, data in self.files.items()]
        if path == f"/api/models/{NAME}/revision/{REVISION}":
            siblings = [{"rfilename": name} for name in self.files]
            data = json.dumps({"id": NAME, "sha": REVISION, "siblings": siblings}).encode()
        elif path.startswith(f"/api/models/{NAME}/tree/{REVISION}"):
            for row in rows:
                row["oid"] = hashlib.sha1(self.files[row["path"]]).hexdigest()
            data = json.dumps(rows).encode()
        elif file in self.files:
            data = self.files[file]
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    """A running server that stands for the hub, as HF_ENDPOINT would name it, and an empty cache."""
    weights = small_ecapa(tmp_path / "weights") / "embedding_model.ckpt"
    Hub.files = {weights.name: weights.read_bytes(), "README.md": CARD, "hyperparams.yaml": b"x: !apply:y"}
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "*")
    yield server
    server.shutdown()
    server.server_close()


def run_import(out: Path, revision: str = REVISION) -> int:
    source = f"hub:{NAME}@{revision}"
    return main(["model", "import", source, "--architecture", "speechbrain_ecapa", "--out", str(out)])


def test_a_pinned_revision_is_downloaded_with_licence_and_digests(hub, tmp_path: Path, capsys) -> None:
    assert run_import(tmp_path / "out") == 0
    model = read_model(tmp_path / "out", "speaker")
    assert (model.licence, model.source) == ("apache-2.0", f"hub {NAME}@{REVISION}")
    wanted = hashlib.sha256(Hub.files["embedding_model.ckpt"]).hexdigest()
    assert model.origin == {"embedding_model.ckpt": wanted}
    assert f"from embedding_model.ckpt: SHA-256 {wanted}" in capsys.readouterr().out
    assert Hub.asked and not [path for path in Hub.asked if "hyperparams" in path]


@pytest.mark.parametrize("reached", [True, False])
def test_another_revision_or_no_hub_is_one_line(
    reached: bool, hub, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = "d" * 40
    if not reached:
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
        hub.shutdown()
        hub.server_close()
    assert run_import(tmp_path / "out", revision) == 2
    (line,) = [text for text in capsys.readouterr().err.splitlines() if text.startswith("voxveil: error")]
    assert f"hub:{NAME}@{revision}: cannot be downloaded" in line
    assert "download embedding_model.ckpt, model.safetensors of that revision on a machine with" in line
    assert not (tmp_path / "out").exists()
