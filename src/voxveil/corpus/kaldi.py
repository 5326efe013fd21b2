"""Kaldi-style folders: ``wav.scp``, ``utt2spk``, ``spk2gender``, and ``text`` if there is one.

A ``wav.scp`` line may name a file. One that ends in a pipe is a command, which is never run: the one form
that only decodes a file, ``flac -c -d -s FILE |``, is read as FILE, any other is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from voxveil.corpus.source import SHARD_STEM, Clip, FileSource, check_clips
from voxveil.runtime.atomic import write_bytes, write_text
from voxveil.runtime.errors import InputError
from voxveil.runtime.shards import ShardReader

__all__ = ["audio_source", "read_kaldi", "read_table", "sex_of", "write_tables"]

_DECODER = re.compile(
    r"(?:\S*/)?flac (?:-[cds]+ |--(?:stdout|decode|silent) )+(?P<file>[^|;&<>$`\s-][^|;&<>$`\s]*)\s*\|\Z"
)

#: Tables with a line for each utterance.
_PER_UTTERANCE = ("utt2spk", "utt2gender", "text")
#: Written anew, or not true of padded outputs.
_OWN = ("wav.scp", "spk2utt", "utt2dur", "utt2num_samples", "utt2num_frames", *_PER_UTTERANCE)

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
            shards = ShardReader(folder, SHARD_STEM) if shards is None else shards
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
        raise InputError(f"{folder / 'wav.scp'}: has no utterances, at least one is needed")
    ordered = check_clips(clips, str(folder))
    return FileSource(folder, ordered, shards)


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
        raise InputError(
            f"{where} is a command, not a file; commands are never run (allowed: FILE, flac -c -d -s FILE |)"
        )
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


def write_tables(source: Path, folder: Path, outputs: Mapping[str, Path]) -> list[str]:
    """Write the tables of a Kaldi data folder for its anonymized speech; return their names.

    VoicePrivacy's evaluation reads them: ``wav.scp`` anew, and those of ``source`` that stay true.

    Args:
        source: The data folder that was anonymized.
        folder: The data folder with the outputs.
        outputs: File of each utterance; paths stand in ``wav.scp`` as they are given here.
    """
    speakers = read_table(source / "utt2spk")
    members: dict[str, list[str]] = {}
    for utterance in sorted(outputs):
        members.setdefault(speakers[utterance][0], []).append(utterance)
    tables = {
        "wav.scp": [f"{utterance} {outputs[utterance]}" for utterance in sorted(outputs)],
        "spk2utt": [f"{speaker} {' '.join(members[speaker])}" for speaker in sorted(members)],
    }
    for name in _PER_UTTERANCE:
        if (source / name).is_file():
            rows = read_table(source / name, blank=True)
            tables[name] = [f"{item} {rows[item][0]}".rstrip() for item in sorted(outputs) if item in rows]
    for name, lines in tables.items():
        write_text(folder / name, "".join(f"{line}\n" for line in lines))
    copied = []
    for path in sorted(source.iterdir()):
        # Trials, enrolments and sexes are the same for anonymized speech.
        plain = path.is_file() and not path.name.startswith(".") and path.suffix in ("", ".txt")
        if plain and path.name not in _OWN:
            write_bytes(folder / path.name, path.read_bytes())
            copied.append(path.name)
    return sorted([*tables, *copied])
