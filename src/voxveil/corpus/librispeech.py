"""LibriSpeech and LibriTTS folders.

LibriSpeech: ``SUBSET/SPEAKER/CHAPTER/SPEAKER-CHAPTER-UTT.flac`` with one
``SPEAKER-CHAPTER.trans.txt`` a chapter. LibriTTS: ``SUBSET/SPEAKER/CHAPTER/SPEAKER_CHAPTER_...wav``
with a ``.normalized.txt`` beside each. Sex comes from ``SPEAKERS.TXT``. No phone timing comes
with either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from voxveil.corpus.source import Clip, FileSource, check_clips
from voxveil.runtime.atomic import write_bytes, write_text
from voxveil.runtime.errors import InputError

__all__ = ["find_speakers_table", "read_librispeech", "read_speakers", "speaker_of", "write_librispeech"]

_TABLES = ("SPEAKERS.TXT", "SPEAKERS.txt", "speakers.txt")
_AUDIO = (".flac", ".wav")
_NOT_TEXT = re.compile(r"[^A-Z' ]+")


def find_speakers_table(folder: Path) -> Path | None:
    """Return ``SPEAKERS.TXT`` of a corpus folder, in whichever case it is written."""
    return next((folder / name for name in _TABLES if (folder / name).is_file()), None)


def speaker_of(utterance: str) -> str:
    """Return the speaker of an utterance id: its first field (``61-70968-0000`` is by 61).

    Raises:
        InputError: The id has no chapter and utterance fields.
    """
    fields = re.split(r"[-_]", utterance)
    if len(fields) < 3 or not all(fields):
        raise InputError(f"utterance {utterance}: must be SPEAKER-CHAPTER-NUMBER")
    return fields[0]


def read_speakers(path: Path) -> dict[str, str]:
    """Read the sex of each speaker.

    Lines are ``ID | SEX | SUBSET | MINUTES | NAME``; names may hold further ``|``. Lines
    that start with ``;`` are comments.

    Returns:
        ``F`` or ``M`` by speaker id.
    """
    sexes: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if fields[0].upper() in ("ID", "READER"):
            continue
        if len(fields) < 2 or fields[1].upper() not in ("F", "M"):
            raise InputError(f"{path}:{number}: must be 'ID | F or M | ...', got {line.strip()[:60]!r}")
        if sexes.setdefault(fields[0], fields[1].upper()) != fields[1].upper():
            raise InputError(f"{path}:{number}: speaker {fields[0]} is given as both F and M")
    return sexes


def read_librispeech(folder: Path) -> FileSource:
    """Open a LibriSpeech or LibriTTS folder.

    Raises:
        InputError: No SPEAKERS.TXT, a speaker without sex, a file in another speaker's folder,
            an utterance that is there twice, or no audio at all.
    """
    table = find_speakers_table(folder)
    if table is None:
        raise InputError(f"{folder}: no SPEAKERS.TXT; the sex of the speakers must be known")
    sexes = read_speakers(table)
    clips: list[Clip] = []
    for subset in sorted(path for path in folder.iterdir() if path.is_dir()):
        for chapter in sorted(path for path in subset.glob("*/*") if path.is_dir()):
            clips += _chapter(chapter, subset.name, sexes, table)
    if not clips:
        raise InputError(f"{folder}: no audio under SUBSET/SPEAKER/CHAPTER/")
    return FileSource(folder, check_clips(clips, str(folder)))


def write_librispeech(folder: Path, clips: Iterable[tuple[Clip, bytes]]) -> int:
    """Write clips in LibriSpeech layout; return their number.

    Args:
        folder: An empty folder.
        clips: Each clip with its FLAC bytes, in order of id; ids are SPEAKER-CHAPTER-NUMBER.
    """
    transcripts: dict[Path, list[str]] = {}
    speakers: dict[str, tuple[str, str]] = {}
    count = 0
    for clip, flac in clips:
        speaker, chapter, _ = clip.id.split("-")
        chapter_folder = folder / clip.subset / speaker / chapter
        write_bytes(chapter_folder / f"{clip.id}.flac", flac)
        transcripts.setdefault(chapter_folder / f"{speaker}-{chapter}.trans.txt", []).append(
            f"{clip.id} {clip.text}\n"
        )
        speakers[speaker] = (clip.sex, clip.subset)
        count += 1
    for path, lines in transcripts.items():
        write_text(path, "".join(lines))
    rows = [f"{name:5}| {sex} | {subset:17}| 0.00  | -\n" for name, (sex, subset) in sorted(speakers.items())]
    write_text(folder / "SPEAKERS.TXT", ";ID  |SEX| SUBSET           |MINUTES| NAME\n" + "".join(rows))
    return count


def _chapter(chapter: Path, subset: str, sexes: dict[str, str], table: Path) -> Iterator[Clip]:
    texts = _transcripts(chapter)
    paths = {path.stem: path for path in chapter.iterdir() if path.suffix.lower() in _AUDIO}
    # A transcript without audio is a bad file like any other: reading it says that it is not there.
    for utterance in sorted(set(paths) | set(texts)):
        path = paths.get(utterance, chapter / f"{utterance}.flac")
        speaker = speaker_of(utterance)
        if speaker != chapter.parent.name:
            raise InputError(f"{path}: lies in the folder of speaker {chapter.parent.name}, not of {speaker}")
        if speaker not in sexes:
            raise InputError(f"{path}: speaker {speaker} is not in {table}")
        text = texts[utterance] if utterance in texts else _normalized(path)
        yield Clip(utterance, speaker, sexes[speaker], text, subset, path)


def _transcripts(chapter: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted(chapter.glob("*.trans.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            utterance, _, text = line.strip().partition(" ")
            if utterance:
                texts[utterance] = _clean(text)
    return texts


def _normalized(path: Path) -> str:
    beside = path.with_name(f"{path.stem}.normalized.txt")
    return _clean(beside.read_text(encoding="utf-8")) if beside.is_file() else ""


def _clean(text: str) -> str:
    return " ".join(_NOT_TEXT.sub(" ", text.upper()).split())
