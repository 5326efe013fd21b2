"""Resumable download of LibriSpeech subsets with MD5 check."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from voxveil.runtime.atomic import whole_directory, write_bytes
from voxveil.runtime.errors import InputError

__all__ = ["LIBRISPEECH_MD5", "LIBRISPEECH_URL", "extract_archive", "fetch_archive", "fetch_subset"]

#: OpenSLR 12.
LIBRISPEECH_URL = "https://www.openslr.org/resources/12"

#: MD5 of ``SUBSET.tar.gz``, from OpenSLR's md5sum.txt.
LIBRISPEECH_MD5 = {
    "dev-clean": "42e2234ba48799c1f50f24a7926300a1",
    "dev-other": "c8d0bcc9cca99d4f8b62fcc847357931",
    "test-clean": "32fa31d27d2e1cad72775fee3f4849a9",
    "test-other": "fb5a50374b501bb3bac4815ee91d3135",
    "train-clean-100": "2a93770f6d5c6c964bc36631d331a522",
    "train-clean-360": "c0e676e450a7ff2f54aeade5171606fa",
    "train-other-500": "d1a0fd59409feb2c614ce4d30c387708",
}

#: Receives (bytes received, bytes in all); 0 in all = the server does not say.
Report = Callable[[int, int], None]

_BLOCK = 1 << 18
_TIMEOUT_S = 60.0


def _silent(done: int, total: int) -> None:
    """Report to nobody."""


def fetch_subset(
    name: str, folder: Path, *, url: str = LIBRISPEECH_URL, md5: str = "", report: Report = _silent
) -> bool:
    """Download and unpack a subset to ``folder/NAME``, with the corpus tables beside it.

    Args:
        name: A subset of :data:`LIBRISPEECH_MD5`.
        folder: The corpus folder.
        url: Where ``NAME.tar.gz`` lies.
        md5: Of the archive; LibriSpeech's unless given.
        report: Receives how far the download is.

    Returns:
        False if the subset was there already.

    Raises:
        InputError: Unknown subset, no connection, wrong MD5, or an archive of another form.
    """
    expected = md5 or LIBRISPEECH_MD5.get(name, "")
    if not expected:
        raise InputError(f"no LibriSpeech subset {name!r}; subsets: {', '.join(LIBRISPEECH_MD5)}")
    if (folder / name).is_dir():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f".{name}.tar.gz.partial"
    fetch_archive(f"{url}/{name}.tar.gz", archive, expected, report)
    with whole_directory(folder / name) as target:
        extract_archive(archive, name, target, folder)
    archive.unlink()
    return True


def fetch_archive(url: str, path: Path, md5: str, report: Report = _silent) -> None:
    """Download ``url`` to ``path``, going on where an earlier try stopped, and check it.

    Raises:
        InputError: The server cannot be reached (what was got stays for the next try), or the
            MD5 differs (the file is removed).
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: must start with http:// or https://")
    start = path.stat().st_size if path.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
            resumed = reply.status == http.HTTPStatus.PARTIAL_CONTENT
            _receive(reply, path, url, start if resumed else 0, report)
    except urllib.error.HTTPError as error:
        # 416: nothing is left to send, the file is whole already.
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise InputError(f"{url}: the server answers {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: download stopped ({reason}); run again to go on from there") from None
    with path.open("rb") as handle:
        got = hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if got != md5:
        path.unlink()
        raise InputError(f"{url}: MD5 is {got}, must be {md5}; removed, run again to download anew")


def _receive(reply: http.client.HTTPResponse, path: Path, url: str, start: int, report: Report) -> None:
    announced = reply.headers.get("Content-Length")
    total = start + int(announced) if announced else 0
    done = start
    with path.open("ab" if start else "wb") as handle:
        while block := reply.read(_BLOCK):
            handle.write(block)
            done += len(block)
            report(done, total)
    if total and done < total:
        raise InputError(f"{url}: download stopped ({done} of {total} bytes); run again to go on from there")


def extract_archive(archive: Path, name: str, target: Path, folder: Path) -> None:
    """Unpack ``LibriSpeech/NAME/...`` into ``target`` and ``LibriSpeech/*.TXT`` into ``folder``.

    Raises:
        InputError: It cannot be unpacked, points outside, or holds no such folder.
    """
    found = False
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                if ".." in parts or member.name.startswith("/"):
                    raise InputError(f"{archive}: member {member.name!r} points outside; nothing unpacked")
                content = tar.extractfile(member) if member.isfile() else None
                if content is None or len(parts) < 2:
                    continue
                if parts[1] == name and len(parts) > 2:
                    found = True
                    _copy(content, target.joinpath(*parts[2:]))
                elif len(parts) == 2 and parts[1].upper().endswith(".TXT"):
                    write_bytes(folder / parts[1], content.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{archive}: cannot be unpacked ({error})") from None
    if not found:
        raise InputError(f"{archive}: holds no folder LibriSpeech/{name}")


def _copy(content: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        shutil.copyfileobj(content, handle, _BLOCK)
