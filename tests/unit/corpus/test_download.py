"""Downloads against a local server: whole, resumed, wrong and broken."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.corpus.download import fetch_subset
from voxveil.runtime.errors import InputError


@dataclass
class Server:
    """A server of one file that can hang up in the middle or ignore ranges."""

    data: bytes
    url: str = ""
    stop_after: int = 0
    ranges: bool = True
    asked: list[str] = field(default_factory=list)


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


GOOD = archive(
    {
        "LibriSpeech/SPEAKERS.TXT": b"61 | M | mini | 1 | A\n",
        "LibriSpeech/mini/61/7/61-7-0000.flac": bytes(range(256)) * 40,
        "LibriSpeech/mini/61/7/61-7.trans.txt": b"61-7-0000 WORDS\n",
    }
)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server(GOOD)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.headers.get("Range", ""))
            if not self.path.endswith("/mini.tar.gz"):
                self.send_error(404)
                return
            start = 0
            if state.ranges and state.asked[-1]:
                start = int(state.asked[-1].removeprefix("bytes=").removesuffix("-"))
            if start >= len(state.data):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(state.data) - start))
            self.end_headers()
            end = start + state.stop_after if state.stop_after else len(state.data)
            self.wfile.write(state.data[start:end])

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    yield state
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


WHOLE = {"SPEAKERS.TXT", "mini/61/7/61-7-0000.flac", "mini/61/7/61-7.trans.txt"}


def test_a_subset_arrives_whole_and_once(server: Server, tmp_path: Path) -> None:
    assert fetch_subset("mini", tmp_path, url=server.url, md5=md5(GOOD))
    assert names(tmp_path) == WHOLE
    assert not fetch_subset("mini", tmp_path, url=server.url, md5=md5(GOOD))
    assert server.asked == [""]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_stopped_download_goes_on(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.stop_after, server.ranges = 100, ranges
    with pytest.raises(InputError, match=r"download stopped .*run again"):
        fetch_subset("mini", tmp_path, url=server.url, md5=md5(GOOD))
    assert not (tmp_path / "mini").exists()
    server.stop_after = 0
    assert fetch_subset("mini", tmp_path, url=server.url, md5=md5(GOOD))
    assert server.asked == ["", "bytes=100-"]
    assert names(tmp_path) == WHOLE


def test_a_whole_archive_is_not_sent_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".mini.tar.gz.partial").write_bytes(GOOD)
    assert fetch_subset("mini", tmp_path, url=server.url, md5=md5(GOOD))
    assert names(tmp_path) == WHOLE


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"MD5 is {md5(GOOD)}, must be {'0' * 32}"):
        fetch_subset("mini", tmp_path, url=server.url, md5="0" * 32)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive({"LibriSpeech/mini/../../../evil": b"x"}), "points outside"),
        (archive({"LibriSpeech/other/a.flac": b"x"}), "holds no folder LibriSpeech/mini"),
        (b"no archive", "cannot be unpacked"),
        (GOOD[:-40], "cannot be unpacked"),
    ],
)
def test_archives_of_another_form_are_refused(
    server: Server, tmp_path: Path, data: bytes, message: str
) -> None:
    server.data = data
    with pytest.raises(InputError, match=message):
        fetch_subset("mini", tmp_path / "corpus", url=server.url, md5=md5(data))
    assert not (tmp_path / "corpus/mini").exists()
    assert not (tmp_path / "evil").exists()


def test_a_server_that_has_it_not_or_is_away_is_named(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"maxi.tar.gz: the server answers 404"):
        fetch_subset("maxi", tmp_path, url=server.url, md5="0" * 32)
    with pytest.raises(InputError, match="download stopped"):
        fetch_subset("mini", tmp_path, url="http://127.0.0.1:9", md5="0" * 32)
    with pytest.raises(InputError, match="must start with http"):
        fetch_subset("mini", tmp_path, url="file:///etc", md5="0" * 32)


def test_the_command_knows_the_subsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "fetch", str(tmp_path), "dev-cleen"]) == 2
    assert "subsets: dev-clean, dev-other" in capsys.readouterr().err
