"""Export of a prepared split as plain files, for tools that do not read tar shards."""

from __future__ import annotations

import shutil
from pathlib import Path

from voxveil.corpus.split import Split
from voxveil.runtime.atomic import whole_directory, write_bytes, write_text
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["unpack_split"]

_TABLES = ("utt2spk", "spk2utt", "spk2gender", "utt2dur", "text", "phones.ctm")
_PER_UTTERANCE = ("wav.scp", "utt2spk", "utt2dur")


def unpack_split(split_folder: Path, out: Path) -> int:
    """Write ``audio/UTT.flac`` and the Kaldi tables of a split; ``wav.scp`` names the files relatively.

    Args:
        split_folder: A split, e.g. ``outputs/prepare/public/pool``.
        out: A folder that does not exist or is empty; it appears whole or not at all.

    Returns:
        The number of utterances.

    Raises:
        InputError: ``out`` holds something, or the split is not one, is empty, or its audio or tables
            contradict its manifest.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; give a new folder")
    split = Split(split_folder)
    if not len(split):
        raise IncompleteInputError(f"{split_folder / 'manifest.jsonl'}: lists no utterances")
    for name in _PER_UTTERANCE:
        _require_same(split, split_folder / name)
    with whole_directory(out) as folder:
        for utterance in split:
            write_bytes(folder / "audio" / f"{utterance.id}.flac", split.verify(utterance.id))
        write_text(folder / "wav.scp", "".join(f"{u.id} audio/{u.id}.flac\n" for u in split))
        for name in _TABLES:
            if (split_folder / name).is_file():
                shutil.copyfile(split_folder / name, folder / name)
    return len(split)


def _require_same(split: Split, table: Path) -> None:
    """Raise an error if a table does not list every utterance of the manifest exactly once."""
    try:
        lines = table.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise IncompleteInputError(f"{table}: no such file; a prepared split has one") from None
    except UnicodeDecodeError:
        raise IncompleteInputError(f"{table}: not a UTF-8 text file") from None
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        item, _, value = line.strip().partition(" ")
        if not item:
            continue
        if item not in split:
            raise IncompleteInputError(f"{table}:{number}: utterance {item} is not in manifest.jsonl")
        if item in seen:
            raise IncompleteInputError(f"{table}:{number}: utterance {item} is there twice")
        if table.name == "utt2spk" and value != split[item].speaker:
            raise IncompleteInputError(
                f"{table}:{number}: utterance {item} is of {value or 'nobody'}, manifest.jsonl says"
                f" {split[item].speaker}"
            )
        seen.add(item)
    missing = [utterance.id for utterance in split if utterance.id not in seen]
    if missing:
        raise IncompleteInputError(f"{table}: utterance {missing[0]} is not there ({len(missing)} missing)")
