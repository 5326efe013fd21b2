"""Kaldi-style folders: ``wav.scp``, ``utt2spk``, ``spk2gender``, and ``text`` if there is one.

A ``wav.scp`` line may name a file. One that ends in a pipe is a command; it is refused and
never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from voxveil.corpus.sharded import ShardedSource, open_shards
from voxveil.corpus.source import Clip, FileSource, check_clips
from voxveil.errors import InputError
from voxveil.storage.shards import ShardReader

__all__ = ["read_kaldi"]

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
    files = _table(folder / "wav.scp")
    speakers = _table(folder / "utt2spk")
    sexes = _table(folder / "spk2gender")
    texts = _table(folder / "text", blank=True) if (folder / "text").is_file() else {}
    subsets = _table(folder / "utt2subset") if (folder / "utt2subset").is_file() else {}
    shards: ShardReader | None = None
    clips = []
    for utterance, (source, line) in files.items():
        where = f"{folder / 'wav.scp'}:{line}"
        if source.endswith("|") or source.startswith("|"):
            raise InputError(
                f"{where}: utterance {utterance} is a command, not a file; commands are never run"
            )
        if ".tar/" in source:
            shards = open_shards(folder) if shards is None else shards
            if utterance not in shards:
                raise InputError(f"{where}: utterance {utterance} is not in the shards of {folder}")
        if utterance not in speakers:
            raise InputError(f"{where}: utterance {utterance} is not in {folder / 'utt2spk'}")
        speaker = speakers[utterance][0]
        if speaker not in sexes:
            raise InputError(f"{folder / 'utt2spk'}: speaker {speaker} is not in {folder / 'spk2gender'}")
        sex, sex_line = sexes[speaker]
        if sex.lower() not in _SEXES:
            raise InputError(f"{folder / 'spk2gender'}:{sex_line}: must be f or m, got {sex!r}")
        text = texts.get(utterance, ("", 0))[0].upper()
        subset = subsets.get(utterance, ("", 0))[0]
        places = [root / source for root in (folder, *roots)]
        path = next((place for place in places if place.is_file()), places[0])
        clips.append(Clip(utterance, speaker, _SEXES[sex.lower()], text, subset, path))
    for utterance, (_, line) in speakers.items():
        if utterance not in files:
            raise InputError(f"{folder / 'utt2spk'}:{line}: utterance {utterance} is not in wav.scp")
    if not clips:
        raise InputError(f"{folder / 'wav.scp'}: no utterances")
    ordered = check_clips(clips, str(folder))
    if shards is not None:
        return ShardedSource(folder.resolve().name, ordered, shards=shards)
    return FileSource(folder.resolve().name, ordered)


def _table(path: Path, *, blank: bool = False) -> dict[str, tuple[str, int]]:
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
