"""Audio players for original and anonymized utterances of corpora declared public."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import IncompleteInputError, PrivacyError

__all__ = ["Pair", "by_utterance", "players", "read_pairs"]


@dataclass(frozen=True)
class Pair:
    """One utterance before and after a system.

    Attributes:
        system: The system.
        kind: ``original`` or ``anonymized``.
        utterance: Utterance id of a public corpus.
        text: What is said, empty where unknown.
        original: FLAC bytes.
        anonymized: FLAC bytes.
    """

    system: str
    kind: str
    utterance: str
    text: str
    original: bytes
    anonymized: bytes


def read_pairs(folder: Path, system: str, kind: str) -> list[Pair]:
    """Read the pairs in ``folder`` (``samples.json`` and FLAC files).

    Raises:
        PrivacyError: Its corpus is not declared public.
        InputError: A file is missing or not what it says.
    """
    path = Path(folder) / "samples.json"
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != 1:
        raise IncompleteInputError(f"{path}: not a list of samples; run the anonymize stage again")
    rows = content["utterances"]
    if rows and content["corpus"].get("public") is not True:
        raise PrivacyError(f"{path}: holds speech of a corpus that is not declared public; not shown")
    return [
        Pair(
            system,
            kind,
            row["utterance"],
            row.get("text", ""),
            *((Path(folder) / row[state]).read_bytes() for state in ("original", "anonymized")),
        )
        for row in rows
    ]


def by_utterance(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Return the pairs of each utterance, in the order given."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.utterance, []).append(pair)
    return groups


def players(pairs: Sequence[Pair]) -> str:
    """Return the players as HTML: an utterance at a time, the original first, then every system."""
    parts = []
    for utterance, group in by_utterance(pairs).items():
        said = f": “{escape(group[0].text.capitalize())}”" if group[0].text else ""
        cells = [_player("original", utterance, group[0].original)]
        cells += [_player(p.system, utterance, p.anonymized) for p in group if p.kind != "original"]
        parts.append(
            f'<h3><span class="id">{escape(utterance)}</span>{said}</h3>\n<div class="pairs">\n'
            + "\n".join(cells)
            + "\n</div>"
        )
    return "\n".join(parts)


def _player(label: str, utterance: str, flac: bytes) -> str:
    data = base64.b64encode(flac).decode()
    return (
        f"<div><b>{escape(label)}</b>"
        f'<audio controls preload="metadata" aria-label="{escape(f"{utterance}, {label}", quote=True)}"'
        f' src="data:audio/flac;base64,{data}"></audio></div>'
    )
