"""A prepared split as plain files, for tools that do not read tar shards."""

from __future__ import annotations

import shutil
from pathlib import Path

from voxveil.corpus.split import Split
from voxveil.errors import InputError
from voxveil.storage.atomic import whole_directory, write_bytes, write_text

__all__ = ["unpack_split"]

_TABLES = ("utt2spk", "spk2utt", "spk2gender", "utt2dur", "text", "phones.ctm")


def unpack_split(split_folder: Path, out: Path) -> int:
    """Write ``audio/UTT.flac`` and the Kaldi tables of a split; ``wav.scp`` names the files relatively.

    Args:
        split_folder: A split, e.g. ``outputs/prepare/public/pool``.
        out: A folder that does not exist or is empty; it appears whole or not at all.

    Returns:
        The number of utterances.

    Raises:
        InputError: ``out`` holds something, or the split is not one.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; give a new folder")
    split = Split(split_folder)
    with whole_directory(out) as folder:
        for utterance in split:
            write_bytes(folder / "audio" / f"{utterance.id}.flac", split.flac(utterance.id))
        write_text(folder / "wav.scp", "".join(f"{u.id} audio/{u.id}.flac\n" for u in split))
        for name in _TABLES:
            if (split_folder / name).is_file():
                shutil.copyfile(split_folder / name, folder / name)
    return len(split)
