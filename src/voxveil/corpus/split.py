"""A split on disk: Kaldi-style tables beside tar shards of audio and F0.

``wav.scp`` (``UTT audio-000.tar/UTT.flac``), ``utt2spk``, ``spk2utt``, ``spk2gender``,
``utt2dur`` (seconds), ``text`` (where transcripts belong to the split), ``phones.ctm``
(where phone timing is known; ``UTT 1 START SECONDS PHONE``), and ``manifest.jsonl`` with
sample count and SHA-256 of each utterance. ``manifest.jsonl`` is what readers use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.errors import IncompleteInputError, InputError
from voxveil.storage.atomic import write_text
from voxveil.storage.shards import ShardReader, ShardWriter, array_bytes, bytes_array

__all__ = ["Phone", "Split", "SplitWriter", "Utterance"]

Audio = NDArray[np.float32]


@dataclass(frozen=True)
class Utterance:
    """One utterance of one speaker.

    Attributes:
        id: Utterance id, unique in the split.
        speaker: Speaker id.
        sex: ``F`` or ``M``.
        samples: Sample count at 16 kHz.
        text: Transcript, empty where the split carries none.
    """

    id: str
    speaker: str
    sex: str
    samples: int
    text: str = ""

    @property
    def frames(self) -> int:
        """Number of 10 ms frames K."""
        return frame_count(self.samples)


@dataclass(frozen=True)
class Phone:
    """A phone and where it lies, in seconds."""

    start: float
    seconds: float
    label: str


class SplitWriter:
    """Writes one split into an existing empty folder; tables appear when the block ends well."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._audio = ShardWriter(folder, "audio", "flac")
        self._f0: ShardWriter | None = None
        self._rows: list[tuple[Utterance, str, str]] = []
        self._phones: dict[str, Sequence[Phone]] = {}

    def add(
        self,
        utterance: Utterance,
        flac: bytes,
        *,
        f0: NDArray[np.float32] | None = None,
        phones: Sequence[Phone] | None = None,
    ) -> None:
        """Append an utterance.

        Args:
            utterance: Its description; ``samples`` must be that of the audio.
            flac: 16 kHz mono FLAC.
            f0: (K,) F0 in Hz, 0 where unvoiced; K = ``utterance.frames``.
            phones: Phone timing, in order.
        """
        address = self._audio.add(utterance.id, flac)
        if f0 is not None:
            if f0.shape != (utterance.frames,):
                raise InputError(
                    f"utterance {utterance.id}: F0 has {f0.shape} values for {utterance.frames} frames"
                )
            if self._f0 is None:
                self._f0 = ShardWriter(self._folder, "f0", "npy")
            self._f0.add(utterance.id, array_bytes(f0.astype(np.float32)))
        if phones is not None:
            self._phones[utterance.id] = phones
        self._rows.append((utterance, address, hashlib.sha256(flac).hexdigest()))

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for shard in (self._audio, self._f0):
            if shard is not None:
                shard.__exit__(kind, error, trace)
        if kind is None:
            self._write_tables()

    def _write_tables(self) -> None:
        rows = self._rows
        speakers: dict[str, list[Utterance]] = {}
        for utterance, _, _ in rows:
            speakers.setdefault(utterance.speaker, []).append(utterance)
        tables = {
            "wav.scp": [f"{u.id} {address}" for u, address, _ in rows],
            "utt2spk": [f"{u.id} {u.speaker}" for u, _, _ in rows],
            "utt2dur": [f"{u.id} {u.samples / SAMPLE_RATE:.6f}" for u, _, _ in rows],
            "spk2utt": [f"{s} {' '.join(u.id for u in speakers[s])}" for s in sorted(speakers)],
            "spk2gender": [f"{s} {speakers[s][0].sex.lower()}" for s in sorted(speakers)],
            "manifest.jsonl": [json.dumps(_row(*row), sort_keys=True, ensure_ascii=False) for row in rows],
        }
        if any(u.text for u, _, _ in rows):
            tables["text"] = [f"{u.id} {u.text}" for u, _, _ in rows]
        if self._phones:
            tables["phones.ctm"] = [
                f"{item} 1 {p.start:.4f} {p.seconds:.4f} {p.label}"
                for item, phones in self._phones.items()
                for p in phones
            ]
        for name, lines in tables.items():
            write_text(self._folder / name, "".join(f"{line}\n" for line in lines))


class Split:
    """Reads a split. Every stream is checked against the manifest when it is opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        manifest = self.folder / "manifest.jsonl"
        if not manifest.is_file():
            raise IncompleteInputError(f"{self.folder}: no manifest.jsonl; is this a prepared split?")
        self.utterances = tuple(
            _utterance(line) for line in manifest.read_text(encoding="utf-8").splitlines()
        )
        self._by_id = {utterance.id: utterance for utterance in self.utterances}
        self._audio = ShardReader(self.folder, "audio")
        self._audio.require(self._by_id)
        self._f0: ShardReader | None = None
        self._phones: dict[str, list[Phone]] | None = None

    def __iter__(self) -> Iterator[Utterance]:
        return iter(self.utterances)

    def __len__(self) -> int:
        return len(self.utterances)

    def __getitem__(self, item: str) -> Utterance:
        try:
            return self._by_id[item]
        except KeyError:
            raise IncompleteInputError(f"utterance {item}: not in {self.folder}") from None

    def __contains__(self, item: str) -> bool:
        return item in self._by_id

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker ids, sorted."""
        return tuple(sorted({utterance.speaker for utterance in self.utterances}))

    def audio(self, item: str) -> Audio:
        """Return (samples,) float32 in [-1, 1]."""
        from voxveil.audio.io import decode

        audio: Audio = decode(self._audio.read(item), item)
        if len(audio) != self[item].samples:
            raise IncompleteInputError(
                f"utterance {item}: {len(audio)} samples, its manifest says {self[item].samples}"
            )
        return audio

    def flac(self, item: str) -> bytes:
        """Return the stored FLAC bytes."""
        return self._audio.read(item)

    def f0(self, item: str) -> NDArray[np.float32]:
        """Return (K,) F0 in Hz, 0 where unvoiced."""
        if self._f0 is None:
            self._f0 = ShardReader(self.folder, "f0")
            self._f0.require(self._by_id)
        f0: NDArray[np.float32] = bytes_array(self._f0.read(item)).astype(np.float32)
        if len(f0) != self[item].frames:
            raise IncompleteInputError(f"utterance {item}: F0 has {len(f0)} frames of {self[item].frames}")
        return f0

    def phones(self, item: str) -> list[Phone]:
        """Return the phones of an utterance in order; an absent timing is an error."""
        if self._phones is None:
            self._phones = _read_ctm(self.folder / "phones.ctm")
            missing = [utterance.id for utterance in self.utterances if utterance.id not in self._phones]
            if missing:
                raise IncompleteInputError(
                    f"utterance {missing[0]}: no phones in {self.folder / 'phones.ctm'}"
                    f" ({len(missing)} missing)"
                )
        return self._phones[item]


def _row(utterance: Utterance, address: str, sha256: str) -> dict[str, Any]:
    return {
        "utterance": utterance.id,
        "speaker": utterance.speaker,
        "sex": utterance.sex,
        "samples": utterance.samples,
        "text": utterance.text,
        "audio": address,
        "sha256": sha256,
    }


def _utterance(line: str) -> Utterance:
    row = json.loads(line)
    return Utterance(row["utterance"], row["speaker"], row["sex"], row["samples"], row["text"])


def _read_ctm(path: Path) -> dict[str, list[Phone]]:
    if not path.is_file():
        raise IncompleteInputError(f"{path}: no phone timing; prepare writes it")
    phones: dict[str, list[Phone]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        item, _, start, seconds, label = line.split(maxsplit=4)
        phones.setdefault(item, []).append(Phone(float(start), float(seconds), label))
    return phones
