"""Kaldi-style folders: ``wav.scp``, ``utt2spk``, ``spk2gender``, and ``text`` if there is one.

A ``wav.scp`` line may name a file. One that ends in a pipe is a command, which is never run: the one form
that only decodes a file, ``flac -c -d -s FILE |``, is read as FILE, any other is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from voxveil.corpus.sharded import ShardedSource, open_shards
from voxveil.corpus.source import Clip, FileSource, check_clips
from voxveil.runtime.errors import InputError
from voxveil.runtime.shards import ShardReader

__all__ = ["audio_source", "read_kaldi", "read_table", "sex_of"]

_DECODER = re.compile(
    r"(?:\S*/)?flac (?:-[cds]+ |--(?:stdout|decode|silent) )+(?P<file>[^|;&<>$`\s-][^|;&<>$`\s]*)\s*\|\Z"
)

_SEXES = {"f": "F", "female": "F", "m": "M", "male": "M"}


def read_kaldi(folder: Path, roots: Sequence[Path] = ()) -> FileSource:
    """Open a Kaldi-style folder.

    Relative paths count from the folder; a file that is not there is looked for below ``roots``.

    Raises:
        InputError: Naming file and line: a command instead of a file, an utterance without
            speaker, a speaker without sex, an id that is there twice, a ``segments`` table.
    """
    folder = Path(folder)
    if (folder / "segments").exists():
        raise InputError(f"{folder / 'segments'}: recordings cut by a segments table are not supported")
    files = read_table(folder / "wav.scp")
    speakers = read_table(folder / "utt2spk")
    sexes = read_table(folder / "spk2gender")
    texts = read_table(folder / "text", blank=True) if (folder / "text").is_file() else {}
    subsets = read_table(folder / "utt2subset") if (folder / "utt2subset").is_file() else {}
    shards: ShardReader | None = None
    clips = []
    for utterance, (source, line) in files.items():
        where = f"{folder / 'wav.scp'}:{line}"
        path = audio_source(folder, source, f"{where}: utterance {utterance}")
        if ".tar/" in source:
            shards = open_shards(folder) if shards is None else shards
            if utterance not in shards:
                raise InputError(f"{where}: utterance {utterance} is not in the shards of {folder}")
        if utterance not in speakers:
            raise InputError(f"{where}: utterance {utterance} is not in {folder / 'utt2spk'}")
        speaker = speakers[utterance][0]
        if speaker not in sexes:
            raise InputError(f"{folder / 'utt2spk'}: speaker {speaker} is not in {folder / 'spk2gender'}")
        sex = sex_of(folder, *sexes[speaker])
        text = texts.get(utterance, ("", 0))[0].upper()
        subset = subsets.get(utterance, ("", 0))[0]
        places = [path, *(root / source for root in roots)]
        path = next((candidate for candidate in places if candidate.is_file()), path)
        clips.append(Clip(utterance, speaker, sex, text, subset, path))
    for utterance, (_, line) in speakers.items():
        if utterance not in files:
            raise InputError(f"{folder / 'utt2spk'}:{line}: utterance {utterance} is not in wav.scp")
    if not clips:
        raise InputError(f"{folder / 'wav.scp'}: no utterances")
    ordered = check_clips(clips, str(folder))
    if shards is not None:
        return ShardedSource(folder.resolve().name, ordered, shards=shards)
    return FileSource(folder.resolve().name, ordered)


def audio_source(folder: Path, source: str, where: str) -> Path:
    """Return the file that the second field of a ``wav.scp`` line names.

    A relative path counts from the folder or, as Kaldi has it, from the working directory.

    Args:
        folder: That of ``wav.scp``.
        source: The field.
        where: What to call the line in an error.

    Raises:
        InputError: A command.
    """
    decoder = _DECODER.match(source)
    if decoder:
        source = decoder["file"]
    elif source.endswith("|") or source.startswith("|"):
        raise InputError(f"{where} is a command, not a file; commands are never run")
    inside = folder / source
    return Path(source) if not inside.exists() and Path(source).is_file() else inside


def sex_of(folder: Path, sex: str, line: int) -> str:
    """Return ``F`` or ``M`` for a field of ``spk2gender``."""
    if sex.lower() not in _SEXES:
        raise InputError(f"{folder / 'spk2gender'}:{line}: must be f or m, got {sex!r}")
    return _SEXES[sex.lower()]


def read_table(path: Path, *, blank: bool = False) -> dict[str, tuple[str, int]]:
    """Return (value, line number) by the first field of a Kaldi table.

    Args:
        path: The file.
        blank: Values may be missing.

    Raises:
        InputError: Naming the line: a value is missing, or a first field is there twice.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; a Kaldi-style corpus needs it")
    rows: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        key, _, value = line.strip().partition(" ")
        if not value.strip() and not blank:
            raise InputError(f"{path}:{number}: must be 'ID VALUE', got {line.strip()!r}")
        if key in rows:
            raise InputError(f"{path}:{number}: {key} is there twice")
        rows[key] = (value.strip(), number)
    return rows
