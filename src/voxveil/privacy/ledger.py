"""The ledger: releases are recorded durably before any noise is drawn.

A release is one run over a list of inputs. Losses do not depend on the data: sample counts and
mechanisms give them, so the whole release is announced at once, and its record goes into the
register (:mod:`voxveil.privacy.register`) before any noise is drawn. A run killed half way stays
charged, a rerun is charged again, an output restored from a cache costs nothing.

    ledger = Ledger.open(purpose="evaluation", system="anon_dp")
    release = ledger.announce([Entry("61-70968-0000", digest, frames, losses, speaker="61")])
    write_json(folder / "ledger.json", release.to_json())
    ...                                        # only now draw noise

The record names inputs and their digests, which are functions of private data outside the
promise: it belongs to whoever holds the originals and is not published with the audio.
"""

from __future__ import annotations

import datetime
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from voxveil.privacy.loss import SEEDED_NOTE
from voxveil.privacy.record import Entry, Purpose, Release, parse_release
from voxveil.privacy.register import Register, open_register
from voxveil.runtime.atomic import dump_json, write_text
from voxveil.runtime.errors import InputError, PrivacyError

__all__ = ["Entry", "Ledger", "Release", "read_ledger", "read_ledgers", "registered", "write_ledger"]


class Ledger:
    """Announces the releases of one system to a register.

    Use :meth:`open`.
    """

    def __init__(self, purpose: Purpose, system: str, register: Register) -> None:
        self._purpose: Purpose = purpose
        self._system = system
        self._register = register

    @classmethod
    def open(cls, *, purpose: Purpose, system: str, register: Register | None = None) -> Ledger:
        """Return a ledger for one system.

        Args:
            purpose: ``release`` for speech that leaves the house, ``evaluation`` for speech made
                to be attacked and measured inside it. Both are charged, and totalled apart.
            system: Name of the anonymization system.
            register: By default the one of :func:`voxveil.privacy.register.open_register`.
        """
        if purpose not in ("release", "evaluation"):
            raise PrivacyError(f"purpose must be 'release' or 'evaluation', got {purpose!r}")
        if not system:
            raise PrivacyError("a ledger needs the name of its system")
        return cls(purpose, system, open_register() if register is None else register)

    def announce(
        self, entries: Iterable[Entry], settings: Mapping[str, str | float] | None = None
    ) -> Release:
        """Write the release to the register, durably, and return it; only then may noise be drawn.

        An input that this system released before for the same purpose is charged again;
        :attr:`Release.warnings` says so.

        Args:
            entries: The inputs.
            settings: What else made the outputs what they are (:attr:`Release.settings`).

        Raises:
            PrivacyError: The register could not be read or written: nothing may be released.
        """
        listed = list(entries)
        if not listed:
            raise PrivacyError(f"system {self._system}: no inputs to announce; nothing was released")
        _refuse_repeats(listed, self._system)
        _refuse_seeded(listed, self._system)
        try:
            earlier = self._earlier_draws()
        except PrivacyError as error:
            raise PrivacyError(f"{error}; nothing was released") from None
        release = Release(
            id=secrets.token_hex(16),
            purpose=self._purpose,
            system=self._system,
            time=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            entries=tuple(replace(entry, earlier=earlier[entry.sha256]) for entry in listed),
            register=self._register.location,
            settings=dict(settings or {}),
        )
        self._register.create(release.id, dump_json(release.to_json()).encode())
        return release

    def _earlier_draws(self) -> Counter[str]:
        return Counter(
            entry.sha256
            for release in registered(self._register)
            if (release.purpose, release.system) == (self._purpose, self._system)
            for entry in release.entries
        )


def registered(register: Register) -> list[Release]:
    """Return every release of a register, in order of time and id.

    Raises:
        PrivacyError: An object is damaged: totals would be too low without it.
    """
    releases = []
    for name, content in register.read_all().items():
        try:
            release = parse_release(content, f"register {register.location}: {name}")
        except InputError as error:
            raise PrivacyError(str(error)) from None
        if release.id != name:
            raise PrivacyError(f"register {register.location}: {name}: holds the release {release.id}")
        if release.parts:
            raise PrivacyError(
                f"register {register.location}: {name}: was gathered from releases that are charged"
                " themselves; it does not belong here"
            )
        releases.append(release)
    return sorted(releases, key=lambda release: (release.time, release.id))


def write_ledger(folder: Path, release: Release, *, private: bool = False) -> Path:
    """Write the release's record into an output folder and return its path.

    The first release is ``ledger.json``; a later one into the same folder (a resumed run) is
    ``ledger-RELEASE.json``, since a record is never rewritten.

    Args:
        folder: The folder.
        release: As announced.
        private: Readable by its owner only.
    """
    path = Path(folder) / "ledger.json"
    if path.exists():
        path = path.with_name(f"ledger-{release.id}.json")
    if path.exists():
        raise PrivacyError(f"{path}: exists already; a ledger is never rewritten")
    write_text(path, dump_json(release.to_json()), private=private)
    return path


def read_ledger(path: Path) -> Release:
    """Read and check one ledger.json.

    Raises:
        InputError: Not a ledger, or its figures contradict each other.
    """
    try:
        return parse_release(Path(path).read_bytes(), str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such ledger") from None


def read_ledgers(folder: Path) -> list[Release]:
    """Read every ledger of an output folder (one per run that wrote into it).

    Raises:
        InputError: There is none, or one is not valid.
    """
    paths = sorted(Path(folder).glob("ledger*.json"))
    if not paths:
        raise InputError(f"{folder}: no ledger.json; released speech comes with one")
    releases = {release.id: release for release in map(read_ledger, paths)}
    return sorted(releases.values(), key=lambda release: (release.time, release.id))


def _refuse_repeats(entries: list[Entry], system: str) -> None:
    repeated = [name for name, count in Counter(entry.input for entry in entries).items() if count > 1]
    if repeated:
        raise PrivacyError(
            f"system {system}: input {repeated[0]} is listed twice in one release; nothing was released"
        )


def _refuse_seeded(entries: list[Entry], system: str) -> None:
    for entry in entries:
        for stream, loss in entry.losses.items():
            if loss.note == SEEDED_NOTE:
                raise PrivacyError(
                    f"system {system}: input {entry.input}: {stream} would have seeded noise, which protects"
                    " nobody; nothing was released"
                )
