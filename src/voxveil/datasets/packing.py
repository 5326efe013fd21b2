"""Copying of a corpus into a dataset's folder, as plain files or as tar shards with Kaldi tables.

Both keep the bytes of each audio file, so the manifest is the same either way.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from voxveil.audio.containers import cut_short, not_read
from voxveil.corpus.source import SHARD_STEM, Clip, Source, clip_file
from voxveil.datasets.face import Row
from voxveil.runtime.atomic import write_text
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError, import_extra
from voxveil.runtime.filenames import NOT_UTF8, printable, utf8_name
from voxveil.runtime.shards import ShardWriter

__all__ = [
    "MOST_FILES",
    "Report",
    "copy_corpus",
    "corpus_files",
    "corpus_rows",
    "pack_corpus",
    "require_inside",
]

#: With more files than this a folder is stored as shards: DVC handles each file by itself.
MOST_FILES = 10_000


def corpus_files(folder: Path) -> list[Path]:
    """Return every file below ``folder`` that belongs to it, sorted; hidden ones do not.

    Raises:
        InputError: A name that is not UTF-8.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if any(part.startswith(".") for part in inner.parts) or not path.is_file():
            continue
        if utf8_name(path) is None:
            raise InputError(f"{printable(path)}: {NOT_UTF8}")
        found.append(inner)
    return found


def require_inside(source: Source, folder: Path) -> None:
    """Raise an error if audio of the corpus lies outside its folder.

    Raises:
        InputError: Naming the utterance.
    """
    base = folder.absolute()
    for clip in source.clips:
        inside = clip.path is not None and clip.path.absolute().is_relative_to(base)
        if not inside or ".." in clip.path.absolute().relative_to(base).parts:  # type: ignore[union-attr]
            raise InputError(
                f"{folder}: utterance {clip.id} lies outside it ({clip.path}); copy it in, or use --shards"
            )


def copy_corpus(source: Source, folder: Path, out: Path, rows: Sequence[Row]) -> None:
    """Copy the files of a corpus folder; Kaldi's ``wav.scp`` names them relatively afterwards.

    Args:
        source: The corpus in ``folder``.
        folder: Where it lies.
        out: An empty folder.
        rows: Its manifest, against which each copy is checked.
    """
    for inner in corpus_files(folder):
        (out / inner).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / inner, out / inner)
    base = folder.absolute()
    relative = {clip.id: _path(clip).absolute().relative_to(base) for clip in source.clips}
    for row in rows:
        copy = out / relative[row.utterance]
        if not copy.is_file() or file_sha256(copy) != row.sha256:
            raise InputError(f"{folder / relative[row.utterance]}: changed while it was copied, or is hidden")
    if (out / "wav.scp").is_file():
        write_text(out / "wav.scp", _lines((clip.id, relative[clip.id].as_posix()) for clip in source.clips))


def pack_corpus(source: Source, out: Path, clips: Iterable[Clip], report: Report) -> list[Row]:
    """Write clips as shards and tables; return their manifest.

    Args:
        source: The corpus they are of.
        out: An empty folder.
        clips: In order of id.
        report: Told how many are done.
    """
    rows, kept, addresses = [], [], []
    with ShardWriter(out, SHARD_STEM, "wav") as shards:
        for done, clip in enumerate(clips, 1):
            with clip_file(source, clip) as path:
                row = clip_row(clip, path)
                data = path.read_bytes()
            rows.append(row)
            kept.append(clip)
            addresses.append((clip.id, shards.add(clip.id, data, _path(clip).suffix.lstrip(".").lower())))
            report(done)
    write_text(out / "wav.scp", _lines(addresses))
    write_tables(out, kept)
    return rows


def write_tables(out: Path, clips: Sequence[Clip]) -> None:
    """Write the Kaldi tables of clips, and ``utt2subset`` where the corpus has parts."""
    write_text(out / "utt2spk", _lines((clip.id, clip.speaker) for clip in clips))
    write_text(out / "spk2gender", _lines(sorted({clip.speaker: clip.sex.lower() for clip in clips}.items())))
    if any(clip.text for clip in clips):
        write_text(out / "text", _lines((clip.id, clip.text) for clip in clips))
    if any(clip.subset for clip in clips):
        write_text(out / "utt2subset", _lines((clip.id, clip.subset) for clip in clips if clip.subset))


def _path(clip: Clip) -> Path:
    if clip.path is None:
        raise InputError(f"utterance {clip.id}: has no file")
    return clip.path


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{key} {value}".rstrip() + "\n" for key, value in pairs)


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
    soundfile = import_extra("soundfile", "data")
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
