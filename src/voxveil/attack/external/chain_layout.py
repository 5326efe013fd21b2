"""Outputs of a finished pipeline as test sets, one per released system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from voxveil.attack.external.speech import External, TestSet
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.runtime.done import DONE, require_done
from voxveil.runtime.errors import InputError

__all__ = ["is_chain", "open_chain_outputs"]


def is_chain(folder: Path) -> bool:
    """Return whether a folder holds what the stages prepare and anonymize write (``outputs/``)."""
    return (folder / "anonymize").is_dir() and (folder / "prepare").is_dir()


def open_chain_outputs(folder: Path, systems: Sequence[str] = ()) -> External:
    """Return every released system with the originals beside it.

    Args:
        folder: ``outputs/`` of a chain; ``prepare`` and the systems' ``anonymize`` must be finished.
        systems: Which ones; unless given, all but those that pass speech through, which are the originals
            of every set and no set of their own.

    Raises:
        InputError: A system is not there, or there is none.
        IncompleteInputError: An output is unfinished or changed since.
    """
    public, private = folder / "prepare/public", folder / "prepare/private"
    for part in (public, private):
        require_done(part, part.name)
    original, original_train = Split(private / "private"), Split(public / "attacker")
    systems_found = sorted(path for path in (folder / "anonymize").iterdir() if path.is_dir())
    known = [path.name for path in systems_found if not _passes_through(path / "released", original)]
    missing = [name for name in systems if name not in known]
    if missing or not known:
        raise InputError(
            f"{folder / 'anonymize'}: no system {missing[0] if missing else ''}".rstrip()
            + f" to attack; there is: {', '.join(known) or 'none'}"
        )
    speaker_of = {item.id: item.speaker for item in original}
    lists = read_trials(private / "trials", speaker_of)
    sets = []
    for name in systems or known:
        released, attacker = (folder / "anonymize" / name / part for part in ("released", "attacker"))
        for part in (released, attacker):
            require_done(part, f"{name} {part.name}")
        sets.append(TestSet(name, lists, Split(released), original, Split(attacker), original_train))
    return External(f"outputs of a chain, systems {', '.join(systems or known)}", tuple(sets))


def _passes_through(released: Path, original: Split) -> bool:
    """Return whether a finished system's speech is the original, byte for byte."""
    if not (released / DONE).is_file():
        return False
    speech, first = Split(released), original.utterances[0].id
    return first in speech and speech.flac(first) == original.flac(first)
