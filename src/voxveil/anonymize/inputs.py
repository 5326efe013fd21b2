"""Recordings of a file, a folder, or a Kaldi data folder to anonymize, and the path of each output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.audio.containers import OTHER_AUDIO, SUFFIXES, not_read
from voxveil.corpus.kaldi import audio_source, read_table, sex_of
from voxveil.runtime.errors import InputError
from voxveil.runtime.filenames import NOT_UTF8, printable, utf8_name

__all__ = [
    "Found",
    "Listed",
    "Refused",
    "list_data_folder",
    "list_file",
    "list_folder",
    "no_file",
    "refuse_collisions",
]


@dataclass(frozen=True)
class Listed:
    """One recording.

    Attributes:
        name: As the ledger names it: the path below the input folder, or an utterance id.
        source: Where it is.
        output: Where its speech goes.
        speaker: Who speaks, empty where that is not known.
        sex: ``F``, ``M``, or empty.
    """

    name: str
    source: Path
    output: Path
    speaker: str = ""
    sex: str = ""


@dataclass(frozen=True)
class Refused:
    """A recording that cannot be used, and why, in one line."""

    name: str
    reason: str


@dataclass
class Found:
    """Recordings, what is refused unread, and how many other files there are."""

    recordings: list[Listed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    others: int = 0

    def refuse(self, path: Path, reason: str) -> None:
        """Add a recording that is not even read."""
        self.refused.append(Refused(printable(path), f"{printable(path)}: {reason}"))


def list_file(source: Path, destination: Path, suffix: str) -> tuple[Path, Found]:
    """Return the output folder and the one recording of a file.

    Args:
        source: The file.
        destination: A folder, or the name of the output.
        suffix: Of outputs, ``.flac`` or ``.wav``.
    """
    named = destination.suffix.lower()
    single = named == suffix and not destination.is_dir()
    if named in SUFFIXES + OTHER_AUDIO and not single and not destination.is_dir():
        form = suffix[1:].upper()
        raise InputError(f"{destination}: outputs are {form}; give a name ending in {suffix}, or a folder")
    folder = destination.parent if single else destination
    found = Found()
    name = utf8_name(Path(source.name))
    if name is None:
        found.refuse(source, NOT_UTF8)
    else:
        output = destination if single else folder / f"{source.stem}{suffix}"
        found.recordings.append(Listed(name, source, output))
    return folder, found


def list_folder(source: Path, folder: Path, suffix: str) -> Found:
    """Return the recordings of a folder and its subfolders; outputs keep the structure.

    Args:
        source: The folder.
        folder: Where outputs go.
        suffix: Of outputs, ``.flac`` or ``.wav``.
    """
    inside, top = folder.resolve(), source.resolve()
    if inside == top:
        raise InputError(f"{folder}: output and input are the same folder")
    if top.is_relative_to(inside):
        raise InputError(f"{folder}: the output folder holds the input folder {source}; choose another one")
    found = Found()

    def unreadable(error: OSError) -> None:
        found.refuse(Path(error.filename), f"refused, cannot be read ({error.strerror})")

    for root, folders, files in os.walk(source, onerror=unreadable):
        here = Path(root)
        # What lies in the output folder is not an input; a link to it is neither.
        outside = [here / name for name in sorted(folders)]
        outside = [path for path in outside if not path.resolve().is_relative_to(inside)]
        for path in outside:
            if path.is_symlink():
                found.refuse(path, "refused, a link to a folder; give the folder itself as IN")
        folders[:] = [path.name for path in outside if not path.is_symlink()]
        for name in sorted(files):
            _sort_file(here / name, source, folder, suffix, found)
    if not found.recordings and not found.refused:
        raise InputError(f"{printable(source)}: no recordings in it (looked for {' '.join(SUFFIXES)})")
    found.recordings.sort(key=lambda listed: listed.name)
    return found


def list_data_folder(source: Path, folder: Path, suffix: str) -> Found:
    """Return the utterances of a Kaldi data folder; outputs lie in ``wav/`` as VoicePrivacy has them.

    Args:
        source: Holds ``wav.scp`` and ``utt2spk``, and ``spk2gender`` where sexes are known.
        folder: Where outputs and tables go.
        suffix: Of outputs, ``.flac`` or ``.wav``.

    Raises:
        InputError: Naming file and line: a command, an utterance without speaker, an id that cannot name a
            file, or recordings cut by a ``segments`` table.
    """
    if folder.resolve() == source.resolve():
        raise InputError(f"{folder}: output and input are the same folder")
    if (source / "segments").exists():
        raise InputError(f"{source / 'segments'}: recordings cut by a segments table are not supported")
    speakers = read_table(source / "utt2spk")
    sexes = read_table(source / "spk2gender") if (source / "spk2gender").is_file() else {}
    found = Found()
    for utterance, (field_, line) in read_table(source / "wav.scp").items():
        where = f"{source / 'wav.scp'}:{line}: utterance {utterance}"
        if utterance not in speakers:
            raise InputError(f"{where} is not in {source / 'utt2spk'}")
        if "/" in utterance or utterance.startswith("."):
            raise InputError(f"{where}: cannot name a file")
        speaker = speakers[utterance][0]
        sex = sex_of(source, *sexes[speaker]) if speaker in sexes else ""
        output = folder / "wav" / f"{utterance}{suffix}"
        found.recordings.append(Listed(utterance, audio_source(source, field_, where), output, speaker, sex))
    if not found.recordings:
        raise InputError(f"{source / 'wav.scp'}: no utterances")
    return found


def _sort_file(path: Path, source: Path, folder: Path, suffix: str, found: Found) -> None:
    file_suffix = path.suffix.lower()
    if file_suffix not in SUFFIXES + OTHER_AUDIO:
        found.others += 1
        return
    name = utf8_name(path.relative_to(source))
    if name is None:
        found.refuse(path, NOT_UTF8)
    elif not path.is_file():
        found.refuse(path, no_file(path))
    elif file_suffix in OTHER_AUDIO:
        found.refuse(path, not_read(path))
    elif path.resolve().is_relative_to(folder.resolve()):
        found.refuse(path, "refused, a link into the output folder")
    else:
        output = (folder / path.relative_to(source)).with_suffix(suffix)
        found.recordings.append(Listed(name, path, output))


def no_file(path: Path) -> str:
    """Return why an existing path is not a readable file."""
    if path.is_symlink() and not path.exists():
        return "refused, a link to a file that is not there"
    return "refused, not a regular file"


def refuse_collisions(recordings: Sequence[Listed]) -> None:
    """Raise an error if two recordings have the same output."""
    seen: dict[Path, str] = {}
    for recording in recordings:
        if recording.output in seen:
            raise InputError(
                f"{seen[recording.output]} and {recording.name} would both become {recording.output};"
                " rename one"
            )
        seen[recording.output] = recording.name
