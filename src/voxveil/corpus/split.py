"""A split on disk: Kaldi-style tables with tar shards of audio and F0.

``wav.scp`` (``UTT audio-000.tar/UTT.flac``), ``utt2spk``, ``spk2utt``, ``spk2gender``,
``utt2dur`` (seconds), ``text`` (where transcripts belong to the split), ``phones.ctm``
(where phone timing is known; ``UTT 1 START SECONDS PHONE``), ``states-NNN.tar`` (where triphone
states are known), and ``manifest.jsonl`` with
sample count and SHA-256 of each utterance. ``manifest.jsonl`` is what readers use.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.runtime.atomic import write_text
from voxveil.runtime.errors import IncompleteInputError
from voxveil.runtime.shards import ShardReader, ShardWriter, array_bytes, bytes_array

__all__ = ["Phone", "Speech", "Split", "SplitWriter", "Spoken", "Utterance"]

Audio = NDArray[np.float32]


class Spoken(Protocol):
    """Id, speaker and sex of an utterance."""

    @property
    def id(self) -> str:
        """Utterance id."""

    @property
    def speaker(self) -> str:
        """Speaker id."""

    @property
    def sex(self) -> str:
        """``F`` or ``M``."""


class Speech(Protocol):
    """Utterances of known speakers with audio: a :class:`Split` or an external corpus."""

    @property
    def folder(self) -> Path:
        """Folder, for messages."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker ids, sorted."""

    def __iter__(self) -> Iterator[Spoken]:
        """Go through the utterances, always in the same order."""

    def __contains__(self, item: str) -> bool:
        """Return whether the utterance exists."""

    def audio(self, item: str) -> Audio:
        """Return (samples,) float32 at 16 kHz."""


@dataclass(frozen=True)
class Utterance:
    """One utterance of one speaker.

    Attributes:
        id: Utterance id, unique in the split.
        speaker: Speaker id.
        sex: ``F`` or ``M``.
        samples: Sample count at 16 kHz.
        text: Transcript, empty where the split carries none.
        subset: Part of the corpus it comes from, empty where there are no parts.
    """

    id: str
    speaker: str
    sex: str
    samples: int
    text: str = ""
    subset: str = ""

    @property
    def frames(self) -> int:
        """Number of 10 ms frames K."""
        return frame_count(self.samples)


@dataclass(frozen=True)
class Phone:
    """A phone with its start and end in seconds."""

    start: float
    seconds: float
    label: str


class SplitWriter:
    """Writes one split into an existing empty folder; tables appear when the block ends well."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._audio = ShardWriter(folder, "audio", "flac")
        self._arrays: dict[str, ShardWriter] = {}
        self._rows: list[tuple[Utterance, str, str]] = []
        self._phones: dict[str, Sequence[Phone]] = {}

    def add(
        self,
        utterance: Utterance,
        flac: bytes,
        *,
        f0: NDArray[np.float32] | None = None,
        phones: Sequence[Phone] | None = None,
        states: NDArray[np.int16] | None = None,
    ) -> None:
        """Append an utterance.

        Args:
            utterance: Its description; ``samples`` must be that of the audio.
            flac: 16 kHz mono FLAC.
            f0: (K,) F0 in Hz, 0 where unvoiced; K = ``utterance.frames``.
            phones: Phone timing, in order.
            states: (K,) triphone state of each frame.
        """
        address = self._audio.add(utterance.id, flac)
        if f0 is not None:
            _checked_f0(array_bytes(f0), utterance.id, utterance.frames)
            self._add_array("f0", utterance.id, f0.astype(np.float32))
        if states is not None:
            _checked_states(array_bytes(states), utterance.id, utterance.frames)
            self._add_array("states", utterance.id, states)
        if phones is not None:
            self._phones[utterance.id] = phones
        self._rows.append((utterance, address, hashlib.sha256(flac).hexdigest()))

    def _add_array(self, stem: str, item: str, array: NDArray[Any]) -> None:
        if stem not in self._arrays:
            self._arrays[stem] = ShardWriter(self._folder, stem, "npy")
        self._arrays[stem].add(item, array_bytes(array))

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for shard in (self._audio, *self._arrays.values()):
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
        rows = _read_manifest(manifest)
        self.utterances = tuple(utterance for utterance, _ in rows)
        self._by_id = {utterance.id: utterance for utterance in self.utterances}
        self._sha256 = {utterance.id: sha256 for utterance, sha256 in rows}
        self._audio = ShardReader(self.folder, "audio")
        self._audio.require(self._by_id)
        self._arrays: dict[str, ShardReader] = {}
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

    def require(self, items: Iterable[str]) -> None:
        """Raise an error naming the first of ``items`` that the split does not hold."""
        missing = [item for item in items if item not in self._by_id]
        if missing:
            raise IncompleteInputError(
                f"utterance {missing[0]}: not in {self.folder} ({len(missing)} missing in all);"
                " run the stage that makes it again"
            )

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker ids, sorted."""
        return tuple(sorted({utterance.speaker for utterance in self.utterances}))

    def audio(self, item: str) -> Audio:
        """Return (samples,) float32 in [-1, 1]."""
        from voxveil.audio.files import decode

        audio: Audio = decode(self._audio.read(item), item)
        if len(audio) != self[item].samples:
            raise IncompleteInputError(
                f"utterance {item}: {len(audio)} samples, its manifest says {self[item].samples}"
            )
        return audio

    def flac(self, item: str) -> bytes:
        """Return the stored FLAC bytes."""
        return self._audio.read(item)

    def verify(self, item: str) -> bytes:
        """Return the stored FLAC bytes after checking digest and sample count against the manifest."""
        data = self.flac(item)
        got = hashlib.sha256(data).hexdigest()
        if got != self._sha256[self[item].id]:
            raise IncompleteInputError(
                f"utterance {item}: its audio has SHA-256 {got[:16]}..., its manifest says"
                f" {self._sha256[item][:16]}...; run the stage that makes it again"
            )
        self.audio(item)
        return data

    def f0(self, item: str) -> NDArray[np.float32]:
        """Return (K,) F0 in Hz, 0 where unvoiced; every value is finite and not negative."""
        return _checked_f0(self._array("f0", item), item, self[item].frames)

    def states(self, item: str) -> NDArray[np.int16]:
        """Return (K,) triphone states, at least 0; only where the corpus was aligned."""
        return _checked_states(self._array("states", item), item, self[item].frames)

    def _array(self, stem: str, item: str) -> bytes:
        if stem not in self._arrays:
            reader = ShardReader(self.folder, stem)
            reader.require(self._by_id)
            self._arrays[stem] = reader
        return self._arrays[stem].read(item)

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
    facts = asdict(utterance)
    return {"utterance": facts.pop("id"), **facts, "audio": address, "sha256": sha256}


def _read_manifest(path: Path) -> list[tuple[Utterance, str]]:
    """Return every utterance with the SHA-256 of its audio."""
    try:
        # Not splitlines: a transcript may hold separators that end a line there and not in JSON.
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise IncompleteInputError(f"{path}: not a UTF-8 text file") from None
    rows: dict[str, tuple[Utterance, str]] = {}
    for number, line in enumerate(lines if lines != [""] else [], 1):
        utterance, sha256 = _utterance(line, f"{path}:{number}")
        if utterance.id in rows:
            raise IncompleteInputError(f"{path}:{number}: utterance {utterance.id} is there twice")
        rows[utterance.id] = (utterance, sha256)
    return list(rows.values())


def _utterance(line: str, where: str) -> tuple[Utterance, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise IncompleteInputError(f"{where}: not valid JSON; a line is one object per utterance") from None
    if not isinstance(row, dict):
        raise IncompleteInputError(f"{where}: must be a JSON object, got {type(row).__name__}")
    for name in ("utterance", "speaker", "sex", "text", "subset", "sha256"):
        if not isinstance(row.get(name), str):
            raise IncompleteInputError(f"{where}: {name} must be text, got {reprlib.repr(row.get(name))}")
    for name in ("utterance", "speaker"):
        if row[name].split() != [row[name]] or "/" in row[name]:
            raise IncompleteInputError(
                f"{where}: {name} must be a name without spaces and '/', got {reprlib.repr(row[name])}"
            )
    samples = row.get("samples")
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise IncompleteInputError(
            f"{where}: samples must be a whole number of at least 1, got {reprlib.repr(samples)}"
        )
    optional = (row[name] for name in ("text", "subset"))
    return Utterance(row["utterance"], row["speaker"], row["sex"], samples, *optional), row["sha256"]


def _stored(data: bytes, item: str, what: str) -> NDArray[Any]:
    try:
        return bytes_array(data)
    except ValueError as error:
        raise IncompleteInputError(f"utterance {item}: {what} not a readable array ({error})") from None


def _checked_f0(data: bytes, item: str, frames: int) -> NDArray[np.float32]:
    stored = _stored(data, item, "F0 is")
    if stored.dtype.kind != "f" or stored.ndim != 1:
        raise IncompleteInputError(
            f"utterance {item}: F0 must be a 1-D array of floats, got {stored.ndim}-D of {stored.dtype}"
        )
    if len(stored) != frames:
        raise IncompleteInputError(f"utterance {item}: F0 has {len(stored)} frames of {frames}")
    with np.errstate(over="ignore"):
        f0: NDArray[np.float32] = stored.astype(np.float32)
    bad = ~(np.isfinite(f0) & (f0 >= 0))
    if bad.any():
        frame = int(np.argmax(bad))
        raise IncompleteInputError(
            f"utterance {item}: F0 of frame {frame} is {f0[frame]}; it must be finite and not negative"
        )
    return f0


def _checked_states(data: bytes, item: str, frames: int) -> NDArray[np.int16]:
    stored: NDArray[np.int16] = _stored(data, item, "states are")
    if stored.dtype != np.int16 or stored.shape != (frames,) or stored.min() < 0:
        raise IncompleteInputError(
            f"utterance {item}: states must be {frames} numbers of int16, at least 0,"
            f" got {stored.dtype} {stored.shape}"
        )
    return stored


def _read_ctm(path: Path) -> dict[str, list[Phone]]:
    if not path.is_file():
        raise IncompleteInputError(f"{path}: no phone timing; prepare writes it")
    phones: dict[str, list[Phone]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            item, _, start, seconds, label = line.split()
            phone = Phone(float(start), float(seconds), label)
        except ValueError:
            raise IncompleteInputError(
                f"{path}:{number}: must be 'UTT 1 START SECONDS PHONE', got {line[:60]!r}"
            ) from None
        phones.setdefault(item, []).append(phone)
    return phones
