"""Manifest rows of a corpus folder; every audio file is opened and hashed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.audio.containers import cut_short, not_read
from voxveil.corpus.source import Clip, Source, clip_file
from voxveil.datasets.face import Row
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError, MissingExtraError

__all__ = ["Report", "clip_row", "corpus_rows"]

#: Told how many are done.
Report = Callable[[int], None]

#: A header can announce any number; beyond this (over a day at 384 kHz) the samples are counted.
_PLAUSIBLE = 1 << 35


def corpus_rows(source: Source, report: Report) -> list[Row]:
    """Return one row per clip, in order of id.

    Args:
        source: An opened corpus.
        report: Told how many clips are done.

    Raises:
        InputError: Naming the first file that is absent or not audio; ``voxveil corpus check`` names
            all.
    """
    rows = []
    for done, clip in enumerate(source.clips, 1):
        with clip_file(source, clip) as path:
            rows.append(clip_row(clip, path))
        report(done)
    return rows


def clip_row(clip: Clip, path: Path) -> Row:
    """Return the row of a clip whose audio is in ``path``."""
    shown = str(clip.path)
    if not path.is_file():
        raise InputError(f"{shown}: no such file (utterance {clip.id})")
    milliseconds = _milliseconds(path, shown)
    return Row(clip.id, clip.speaker, clip.sex, clip.subset, milliseconds, file_sha256(path))


def _milliseconds(path: Path, shown: str) -> int:
    soundfile = _soundfile()
    if path.stat().st_size == 0:
        raise InputError(f"{shown}: refused, the file has 0 bytes")
    if refusal := not_read(path):
        raise InputError(f"{shown}: {refusal}")
    if cut := cut_short(path):
        raise InputError(f"{shown}: refused, cut short ({cut})")
    try:
        info = soundfile.info(str(path))
    except (soundfile.SoundFileError, RuntimeError) as error:
        reason = " ".join(str(error).split()).rpartition(": ")[2].rstrip(".")
        raise InputError(f"{shown}: refused, not readable as audio ({reason})") from None
    samples, rate = int(info.frames), int(info.samplerate)
    if not 0 < samples < _PLAUSIBLE:
        from voxveil.audio.files import read_recording

        recording = read_recording(path, shown)
        samples, rate = recording.source_samples, recording.source_rate
    return (samples * 1000 + rate // 2) // rate


def _soundfile() -> Any:
    try:
        import soundfile
    except ImportError:
        raise MissingExtraError("soundfile", "data") from None
    return soundfile
