"""Text and JSON output of dataset versions and changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

from voxveil.datasets.changes import Changes
from voxveil.datasets.history import Version
from voxveil.runtime.atomic import dump_json
from voxveil.runtime.terminal import align_columns

__all__ = ["print_changes", "print_json", "print_table"]

_HEADER = ("dataset", "revision", "date", "speakers", "utterances", "hours", "hash", "")
#: Names shown of each kind; JSON has them all.
_SHOWN = 20


def print_table(versions: Sequence[Version]) -> None:
    """Print one line per version."""
    if not versions:
        print("no dataset versions; 'voxveil data add' makes one, 'git commit' keeps it")
        return
    rows = []
    for version in versions:
        face = version.face
        figures = ["?"] * 4
        if face is not None:
            figures = [
                f"{face.speakers} ({face.speakers_f} F, {face.speakers_m} M)",
                str(face.utterances),
                f"{face.hours:.3f}",
                face.manifest_sha256[:12],
            ]
        note = "" if face is None else "public" if face.public else "private"
        fault = f"cannot be trusted: {version.fault}" if version.fault else note
        rows.append([version.name, version.commit[:12], version.date, *figures, fault])
    print("\n".join(align_columns([_HEADER, *rows])))


def print_json(versions: Sequence[Version]) -> None:
    """Print everything known of each version."""
    content = [
        {
            "dataset": version.name,
            "revision": version.commit,
            "date": version.date,
            "fault": version.fault,
            "summary": None if version.face is None else asdict(version.face),
        }
        for version in versions
    ]
    sys.stdout.write(dump_json(content))


def print_changes(name: str, before: str, after: str, changes: Changes) -> None:
    """Print what changed, the first names of each kind."""
    hours = changes.hours
    kinds = (
        ("added", changes.speakers_added, changes.added, hours[0]),
        ("removed", changes.speakers_removed, changes.removed, hours[1]),
        ("changed", changes.speakers_changed, tuple(new for _, new in changes.changed), hours[2]),
    )
    print(f"dataset {name}: {before} -> {after}")
    if not any(rows for _, _, rows, _ in kinds):
        print("no difference")
        return
    rows = [[kind, str(len(speakers)), str(len(rows)), f"{h:.3f}"] for kind, speakers, rows, h in kinds]
    print("\n".join(align_columns([("", "speakers", "utterances", "hours"), *rows])))
    for kind, speakers, _, _ in kinds:
        if speakers:
            print(f"speakers {kind}: {_some(speakers)}")
    for kind, _, utterances, _ in kinds:
        if utterances:
            print(f"utterances {kind}: {_some([row.utterance for row in utterances])}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more (--json)" if len(names) > _SHOWN else ""
    return " ".join(names[:_SHOWN]) + more
