"""Differences between two versions of a dataset, computed from their manifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from voxveil.datasets.face import Row

__all__ = ["Changes", "compare"]


@dataclass(frozen=True)
class Changes:
    """Differences from version A to version B.

    Attributes:
        speakers_added: Speakers of B alone, sorted.
        speakers_removed: Speakers of A alone.
        speakers_changed: Speakers of both with other utterances, audio, sex or subset.
        added: Rows of utterances of B alone.
        removed: Rows of utterances of A alone.
        changed: Both rows of utterances whose audio, speaker, sex or subset differs.
    """

    speakers_added: tuple[str, ...]
    speakers_removed: tuple[str, ...]
    speakers_changed: tuple[str, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    changed: tuple[tuple[Row, Row], ...]

    @property
    def hours(self) -> tuple[float, float, float]:
        """Hours added, removed, and of changed utterances (as they are in B)."""
        after = [new for _, new in self.changed]
        return _hours(self.added), _hours(self.removed), _hours(after)

    def to_json(self) -> dict[str, Any]:
        """Return everything for JSON."""
        added, removed, changed = self.hours
        return {
            "speakers": {
                "added": list(self.speakers_added),
                "removed": list(self.speakers_removed),
                "changed": list(self.speakers_changed),
            },
            "utterances": {
                "added": [row.utterance for row in self.added],
                "removed": [row.utterance for row in self.removed],
                "changed": [new.utterance for _, new in self.changed],
            },
            "hours": {"added": added, "removed": removed, "changed": changed},
        }


def compare(before: Sequence[Row], after: Sequence[Row]) -> Changes:
    """Return what changed from manifest ``before`` to manifest ``after``."""
    old = {row.utterance: row for row in before}
    new = {row.utterance: row for row in after}
    added = tuple(new[name] for name in sorted(new.keys() - old.keys()))
    removed = tuple(old[name] for name in sorted(old.keys() - new.keys()))
    changed = tuple(
        (old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]
    )
    earlier, later = _speakers(before), _speakers(after)
    touched = _speakers([*added, *removed, *(row for pair in changed for row in pair)])
    return Changes(
        speakers_added=tuple(sorted(later - earlier)),
        speakers_removed=tuple(sorted(earlier - later)),
        speakers_changed=tuple(sorted(touched & earlier & later)),
        added=added,
        removed=removed,
        changed=changed,
    )


def _speakers(rows: Iterable[Row]) -> set[str]:
    return {row.speaker for row in rows}


def _hours(rows: Iterable[Row]) -> float:
    return round(sum(row.milliseconds for row in rows) / 3_600_000, 6)
