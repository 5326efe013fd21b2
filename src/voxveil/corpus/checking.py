"""Check of every audio file of a folder before a long job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from voxveil.audio.containers import OTHER_AUDIO, SUFFIXES
from voxveil.audio.files import read_recording
from voxveil.runtime.errors import InputError
from voxveil.runtime.filenames import NOT_UTF8, printable, utf8_name

__all__ = ["Finding", "audio_files", "check_file"]


@dataclass(frozen=True)
class Finding:
    """Result of the check of one file.

    Attributes:
        path: The file.
        refused: Why it cannot be used, in one line; empty if it can.
        flags: What would be done to it, or was seen in it.
        seconds: Its length.
    """

    path: Path
    refused: str = ""
    flags: tuple[str, ...] = ()
    seconds: float = 0.0


def audio_files(folder: Path) -> Iterator[Path]:
    """Yield every file below ``folder`` with the name of an audio file, read here or not, sorted."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES + OTHER_AUDIO and not path.is_dir():
            yield path


def check_file(path: Path) -> Finding:
    """Read one file completely, by the rules of a corpus: silence is an error."""
    if utf8_name(path) is None:
        return Finding(path, f"{printable(path)}: {NOT_UTF8}")
    try:
        recording = read_recording(path)
    except InputError as error:
        return Finding(path, str(error))
    seconds = recording.source_samples / recording.source_rate
    if "silent" in recording.flags:
        reason = f"{path}: refused, all its samples are equal in 16 bit (silence)"
        return Finding(path, reason, recording.flags, seconds)
    return Finding(path, "", recording.flags, seconds)
