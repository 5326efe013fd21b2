"""Manifest and summary of a dataset version, the files that are reviewed in Git.

``NAME.manifest.tsv`` has the columns ``utterance speaker sex subset seconds sha256``, sorted by
utterance; ``seconds`` has three decimals, ``sha256`` is that of the audio file as it was given.
``NAME.json`` says how many speakers, utterances and hours that is, and the SHA-256 of the manifest,
which is what other tools call the dataset's hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from voxveil.runtime.atomic import dump_json
from voxveil.runtime.errors import InputError

__all__ = ["Face", "Row", "face_text", "manifest_text", "parse_face", "parse_manifest", "summary"]

COLUMNS = ("utterance", "speaker", "sex", "subset", "seconds", "sha256")
FORMAT = 1

Storage = Literal["files", "shards"]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_SECONDS = re.compile(r"\d+\.\d{3}\Z")


@dataclass(frozen=True, order=True)
class Row:
    """One utterance.

    Attributes:
        utterance: Its id.
        speaker: Speaker id.
        sex: ``F`` or ``M``.
        subset: Part of the corpus, empty where there are none.
        milliseconds: Length, rounded.
        sha256: Of its audio file.
    """

    utterance: str
    speaker: str
    sex: str
    subset: str
    milliseconds: int
    sha256: str


@dataclass(frozen=True)
class Face:
    """Summary of one dataset version.

    Attributes:
        name: Name of the dataset.
        public: False = speech of people who are to be protected.
        storage: ``files`` (the corpus as it was given) or ``shards`` (tar shards and Kaldi tables).
        speakers_f: Number of female speakers.
        speakers_m: Number of male speakers.
        utterances: Number of utterances.
        hours: Sum of the manifest's seconds, in hours.
        manifest_sha256: The dataset's hash.
        dvc_md5: Digest of the data in ``NAME.dvc``: manifest and data belong together.
    """

    name: str
    public: bool
    storage: Storage
    speakers_f: int
    speakers_m: int
    utterances: int
    hours: float
    manifest_sha256: str
    dvc_md5: str

    @property
    def speakers(self) -> int:
        """Number of speakers."""
        return self.speakers_f + self.speakers_m


def manifest_text(rows: Iterable[Row]) -> str:
    """Return the manifest: equal rows give equal text, whatever their order.

    Raises:
        InputError: A field that a table of tabs and lines cannot hold.
    """
    lines = ["\t".join(COLUMNS)]
    for row in sorted(rows):
        seconds = f"{row.milliseconds // 1000}.{row.milliseconds % 1000:03d}"
        fields = (row.utterance, row.speaker, row.sex, row.subset, seconds, row.sha256)
        if any(field.splitlines() not in ([], [field]) or "\t" in field for field in fields):
            raise InputError(f"utterance {row.utterance!r}: an id or subset with a tab or line break")
        lines.append("\t".join(fields))
    return "".join(f"{line}\n" for line in lines)


def parse_manifest(text: str, where: str) -> tuple[Row, ...]:
    """Read a manifest.

    Args:
        text: Its content.
        where: Names it in errors.

    Raises:
        InputError: Naming the line.
    """
    lines = text.removesuffix("\n").split("\n")
    if tuple(lines[0].split("\t")) != COLUMNS:
        raise InputError(f"{where}:1: must be the columns {' '.join(COLUMNS)}, got {lines[0][:80]!r}")
    rows = [_row(line, f"{where}:{number}") for number, line in enumerate(lines[1:], 2)]
    for before, row in zip(rows, rows[1:]):
        if before.utterance >= row.utterance:
            raise InputError(f"{where}: utterance {row.utterance} is listed twice or out of order")
    return tuple(rows)


def _row(line: str, where: str) -> Row:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS):
        raise InputError(f"{where}: must have {len(COLUMNS)} columns, got {line[:80]!r}")
    utterance, speaker, sex, subset, seconds, sha256 = fields
    if not utterance or not speaker or sex not in ("F", "M"):
        raise InputError(f"{where}: needs an utterance, a speaker and F or M, got {line[:80]!r}")
    if not _SECONDS.match(seconds) or not _SHA256.match(sha256):
        raise InputError(f"{where}: seconds need three decimals and sha256 64 digits, got {line[:160]!r}")
    return Row(utterance, speaker, sex, subset, int(seconds.replace(".", "")), sha256)


def summary(name: str, rows: Sequence[Row], *, public: bool, storage: Storage, dvc_md5: str) -> Face:
    """Return the summary of a version.

    Args:
        name: Name of the dataset.
        rows: Its utterances.
        public: False = speech of people who are to be protected.
        storage: How it lies in its folder.
        dvc_md5: Digest DVC gave its data.
    """
    sexes = Counter({row.speaker: row.sex for row in rows}.values())
    return Face(
        name=name,
        public=public,
        storage=storage,
        speakers_f=sexes["F"],
        speakers_m=sexes["M"],
        utterances=len(rows),
        hours=round(sum(row.milliseconds for row in rows) / 3_600_000, 6),
        manifest_sha256=hashlib.sha256(manifest_text(rows).encode()).hexdigest(),
        dvc_md5=dvc_md5,
    )


def face_text(face: Face) -> str:
    """Return ``NAME.json``."""
    return dump_json({"format": FORMAT, **asdict(face)})


def parse_face(text: str, where: str) -> Face:
    """Read ``NAME.json``.

    Raises:
        InputError: It is none, or of another format.
    """
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not valid JSON") from None
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise InputError(f"{where}: must be a dataset summary of format {FORMAT}")
    kinds = {"public": bool, "speakers_f": int, "speakers_m": int, "utterances": int, "hours": float}
    for name in Face.__dataclass_fields__:
        kind = kinds.get(name, str)
        value = content.get(name)
        if not isinstance(value, int | float if kind is float else kind):
            raise InputError(f"{where}: {name} must be {kind.__name__}, got {value!r}")
    unknown = sorted(set(content) - set(Face.__dataclass_fields__))
    if unknown:
        raise InputError(f"{where}: unknown {unknown[0]}; written by a newer version?")
    return Face(**content)
