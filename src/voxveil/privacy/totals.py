"""Total privacy loss of all registered releases.

Sequential over repeated releases of one utterance (the same audio, by its SHA-256): epsilons
add. Parallel over different utterances at the unit of the promise, one utterance: the worst
counts. A speaker is a group of utterances: to change all of them at once costs their sum.

Where a release under zCDP takes part, no pure epsilon holds for the sum; its rho does, to which
the pure releases add epsilon^2 / 2 of each stream and vector.

A total holds for neighbours that are equal in every invariant of what it adds up. Where recognized words are
among them there is no unconditional total: the condition stands beside it, and no release is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from voxveil.privacy.loss import add_up
from voxveil.privacy.record import Entry, Purpose, Release

__all__ = ["SpeakerTotal", "UtteranceTotal", "speaker_totals", "utterance_totals"]


@dataclass(frozen=True)
class UtteranceTotal:
    """Total privacy loss of one utterance so far.

    Attributes:
        sha256: SHA-256 of its audio.
        inputs: The names it was given, sorted.
        speakers: The speakers it was attributed to, sorted; empty where unknown.
        releases: Number of releases it was part of.
        epsilon: Their sum in nat; ``inf`` where one had no noise, or noise under zCDP only.
        rho: Where a release under zCDP takes part, the sum of all rhos, ``inf`` where one had no noise;
            else None.
        invariants: Of all its releases, sorted: epsilon and rho hold under them.
    """

    sha256: str
    inputs: tuple[str, ...]
    speakers: tuple[str, ...]
    releases: int
    epsilon: float
    rho: float | None
    invariants: tuple[str, ...]


@dataclass(frozen=True)
class SpeakerTotal:
    """Total privacy loss of one speaker so far, as a group of utterances.

    Attributes:
        speaker: Speaker id.
        utterances: Number of different utterances.
        releases: Number of entries charged.
        epsilon: Sum over everything released, in nat.
        worst: Largest total of one utterance, in nat.
        rho: As above, over everything released.
        invariants: Of everything released, sorted.
    """

    speaker: str
    utterances: int
    releases: int
    epsilon: float
    worst: float
    rho: float | None
    invariants: tuple[str, ...]


def utterance_totals(
    releases: Iterable[Release], *, purpose: Purpose | None = None, system: str | None = None
) -> list[UtteranceTotal]:
    """Return the total of each utterance, sorted by its first name and digest.

    Args:
        releases: In any order; one that occurs twice is counted once.
        purpose: Only releases of this purpose.
        system: Only releases of this system.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in _entries(releases, purpose, system):
        groups.setdefault(entry.sha256, []).append(entry)
    totals = [_utterance(digest, entries) for digest, entries in groups.items()]
    return sorted(totals, key=lambda total: (total.inputs, total.sha256))


def speaker_totals(
    releases: Iterable[Release], *, purpose: Purpose | None = None, system: str | None = None
) -> list[SpeakerTotal]:
    """Return the total of each known speaker, sorted by id; arguments as above."""
    groups: dict[str, list[Entry]] = {}
    for entry in _entries(releases, purpose, system):
        if entry.speaker is not None:
            groups.setdefault(entry.speaker, []).append(entry)
    totals = []
    for speaker, entries in sorted(groups.items()):
        sums: dict[str, list[float]] = {}
        for entry in entries:
            sums.setdefault(entry.sha256, []).append(entry.utterance.epsilon)
        everything = add_up(entry.utterance.epsilon for entry in entries)
        worst = max(add_up(values) for values in sums.values())
        totals.append(
            SpeakerTotal(
                speaker, len(sums), len(entries), everything, worst, _rho(entries), _invariants(entries)
            )
        )
    return totals


def _entries(releases: Iterable[Release], purpose: Purpose | None, system: str | None) -> list[Entry]:
    distinct = {release.id: release for release in releases}
    return [
        entry
        for name in sorted(distinct)
        if purpose in (None, distinct[name].purpose) and system in (None, distinct[name].system)
        for entry in distinct[name].entries
    ]


def _utterance(digest: str, entries: list[Entry]) -> UtteranceTotal:
    return UtteranceTotal(
        sha256=digest,
        inputs=tuple(sorted({entry.input for entry in entries})),
        speakers=tuple(sorted({entry.speaker for entry in entries if entry.speaker is not None})),
        releases=len(entries),
        epsilon=add_up(entry.utterance.epsilon for entry in entries),
        rho=_rho(entries),
        invariants=_invariants(entries),
    )


def _rho(entries: list[Entry]) -> float | None:
    if all(entry.utterance.rho is None for entry in entries):
        return None
    return add_up(entry.rho for entry in entries)


def _invariants(entries: list[Entry]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*(entry.utterance.invariants for entry in entries))))
