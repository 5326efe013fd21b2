"""The merged record of a release whose inputs were split between several pods.

Each pod announces its own inputs, so the register holds a release for each of them, and one more for every
pod that was started again. What they made is one release to whoever reads it: its ``ledger.json`` holds every
entry of the releases behind it once, in the order of the inputs, and names them as its parts. It is never
announced itself: totals over the register count the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from voxveil.privacy.record import Entry, Release, gathered_id
from voxveil.runtime.errors import PrivacyError

__all__ = ["gather_releases", "gathered_fault"]


def gather_releases(releases: Sequence[Release], order: Sequence[str]) -> Release:
    """Return the one record of several releases of different inputs.

    Args:
        releases: As announced, at least two.
        order: Every input once, as the record lists them.

    Raises:
        PrivacyError: They are not releases of one system under one version and purpose; an input is in two of
            them, in none, or not among those asked for.
    """
    if len(releases) < 2 or len({release.id for release in releases}) < len(releases):
        raise PrivacyError(f"{len(releases)} releases to gather: must be at least 2, and each another one")
    first = releases[0]
    for other in releases[1:]:
        for name in ("system", "purpose", "version", "settings"):
            one, two = getattr(first, name), getattr(other, name)
            if one != two:
                raise PrivacyError(
                    f"releases {first.id} and {other.id} are not of one run: {name} is {one!r} and {two!r}"
                )
    entries: dict[str, Entry] = {}
    for release in releases:
        for entry in release.entries:
            if entry.input in entries:
                raise PrivacyError(
                    f"system {first.system}: input {entry.input} is in two of the releases to gather"
                )
            entries[entry.input] = entry
    if len(set(order)) < len(order):
        raise PrivacyError(f"system {first.system}: an input is to be gathered twice")
    for given, wanted, fault in (
        (order, entries, "is in none of the releases to gather"),
        (entries, set(order), "was announced, but nothing of it is there"),
    ):
        lost = [name for name in given if name not in wanted]
        if lost:
            raise PrivacyError(f"system {first.system}: input {lost[0]} {fault} ({len(lost)} in all)")
    parts = tuple(sorted(release.id for release in releases))
    return Release(
        id=gathered_id(parts),
        purpose=first.purpose,
        system=first.system,
        time=max(release.time for release in releases),
        entries=tuple(entries[name] for name in order),
        register=first.register,
        version=first.version,
        settings=first.settings,
        parts=parts,
    )


def gathered_fault(record: Release, known: Mapping[str, Release]) -> str:
    """Return why a gathered record contradicts its parts, ending in "the register"; empty if it agrees.

    Args:
        record: One with parts.
        known: The releases of the register by id.
    """
    for part in record.parts:
        if part not in known:
            return f"its part {part} is not in the register"
    try:
        again = gather_releases(
            [known[part] for part in record.parts], [entry.input for entry in record.entries]
        )
    except PrivacyError as error:
        return f"{error}, says the register"
    return "" if again.to_json() == record.to_json() else "differs from its parts in the register"
