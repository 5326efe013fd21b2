"""A corpus with Kaldi tables whose audio files are in tar shards, in any format and rate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from voxveil.corpus.source import Clip, FileSource, Reading, Source
from voxveil.runtime.errors import InputError
from voxveil.runtime.shards import ShardReader

__all__ = ["SHARD_STEM", "ShardedSource", "clip_file", "open_shards"]

#: Shards are named ``audio-000.tar``.
SHARD_STEM = "audio"


@dataclass(frozen=True)
class ShardedSource(FileSource):
    """A corpus of which some or all clips have the path ``FOLDER/audio-NNN.tar/UTT.SUFFIX``.

    Attributes:
        shards: Reader of those shards.
    """

    shards: ShardReader | None = None

    def read(self, clip: Clip) -> Reading:
        """Read the clip by the same rules as a plain file."""
        with clip_file(self, clip) as path:
            try:
                return super().read(replace(clip, path=path))
            except InputError as error:
                raise InputError(str(error).replace(str(path), str(clip.path))) from None


def open_shards(folder: Path) -> ShardReader:
    """Return a reader of the audio shards of a corpus folder."""
    return ShardReader(folder, SHARD_STEM)


@contextmanager
def clip_file(source: Source, clip: Clip) -> Iterator[Path]:
    """Yield a file with the clip's audio: its own, or a temporary one within the block.

    Raises:
        InputError: The clip has no file.
    """
    if clip.path is None:
        raise InputError(f"utterance {clip.id}: has no file")
    if not isinstance(source, ShardedSource) or source.shards is None or clip.path.parent.suffix != ".tar":
        yield clip.path
        return
    with tempfile.TemporaryDirectory(prefix="voxveil-") as folder:
        path = Path(folder) / f"clip{clip.path.suffix}"
        path.write_bytes(source.shards.read(clip.id))
        yield path
