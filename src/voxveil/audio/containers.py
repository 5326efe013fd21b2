"""Supported audio formats by file suffix and container, and detection of truncated files.

libsndfile reads what is left of a cut WAV, AIFF, OGG, SPHERE or W64 file without a word, so these have
a check of their own. It notices a cut FLAC or CAF, and a cut MP3 if that has a Xing header; an MP3 without
one does not say how long it is.
"""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

__all__ = ["CONTAINERS", "OTHER_AUDIO", "SUFFIXES", "cut_short", "not_read"]

#: Suffix -> containers (libsndfile's names) that belong under it.
CONTAINERS = {
    ".flac": {"FLAC"},
    ".wav": {"WAV", "WAVEX", "RF64"},
    ".ogg": {"OGG"},
    ".opus": {"OGG"},
    ".mp3": {"MP3", "MPEG"},
    ".aiff": {"AIFF"},
    ".aif": {"AIFF"},
    ".sph": {"NIST"},
    ".w64": {"W64"},
    ".caf": {"CAF"},
}

#: What counts as a recording in a folder.
SUFFIXES = tuple(CONTAINERS)

#: Sound, but not read here: named as refused, never passed over as some other file.
OTHER_AUDIO = (
    *(".3gp", ".aac", ".ac3", ".aifc", ".amr", ".ape", ".au", ".dss", ".gsm", ".m4a", ".m4b", ".mka"),
    *(".mov", ".mp2", ".mp4", ".oga", ".ra", ".rf64", ".snd", ".spx", ".voc", ".webm", ".wma", ".wv"),
)

_HEAD = 1024
#: No page of an OGG file is longer.
_OGG_PAGE = 27 + 255 + 255 * 255
_OGG_LAST = 4
_SPHERE = re.compile(
    rb"^(sample_count|sample_n_bytes|channel_count) -(?:i|s\d+) (\d{1,18})\s*$", re.MULTILINE
)


def not_read(path: Path) -> str:
    """Return why files of this suffix are not read, or an empty string."""
    suffix = path.suffix.lower()
    if suffix not in OTHER_AUDIO:
        return ""
    return f"refused, {suffix} is not read; convert it to one of {' '.join(SUFFIXES)}"


def cut_short(path: Path) -> str:
    """Return by how much a file is shorter than its header announces, or an empty string."""
    size = path.stat().st_size
    with path.open("rb") as handle:
        head = handle.read(_HEAD)
        handle.seek(max(0, size - _OGG_PAGE))
        tail = handle.read()
    if head[:4] == b"OggS":
        return _ogg_cut(tail)
    announced = _announced(head)
    return f"{size} of {announced} bytes" if announced > size + 1 else ""


def _announced(head: bytes) -> int:
    """Return the size in bytes in a file's header, 0 if absent."""
    kind, form = head[:4], head[8:12]
    if kind == b"RIFF" and form == b"WAVE":
        size = int.from_bytes(head[4:8], "little") + 8
        # Written to a pipe: the size was not known.
        return 0 if size <= 8 + 36 or size >= 0x7FFFFFFF else size
    if kind == b"RF64" and head[12:16] == b"ds64":
        return int.from_bytes(head[20:28], "little") + 8
    if kind == b"FORM" and form in (b"AIFF", b"AIFC"):
        return int.from_bytes(head[4:8], "big") + 8
    if kind == b"riff" and head[24:28] == b"wave":
        return int.from_bytes(head[16:24], "little")
    if head[:8] == b"NIST_1A\n" and head[8:15].strip().isdigit():
        facts = {key: int(value) for key, value in _SPHERE.findall(head)}
        if len(facts) == 3 and b"shorten" not in head:
            return int(head[8:15]) + prod(facts.values())
    return 0


def _ogg_cut(tail: bytes) -> str:
    page = tail.rfind(b"OggS")
    if page < 0 or len(tail) < page + 27:
        return "its last page is not whole"
    segments = tail[page + 27 : page + 27 + tail[page + 26]]
    if len(segments) < tail[page + 26] or len(tail) < page + 27 + len(segments) + sum(segments):
        return "its last page is not whole"
    return "" if tail[page + 5] & _OGG_LAST else "its last page is not there"
