"""The record of one release, stored as ``ledger.json`` and in the register, with its checks."""

from __future__ import annotations

import hashlib
import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from voxveil import __version__
from voxveil.privacy.invariants import LENGTH, neighbours_text, public_facts, words_of
from voxveil.privacy.loss import Loss, add_up, compose, stream_rho, utterance_loss
from voxveil.runtime.errors import InputError, PrivacyError

__all__ = [
    "FORMAT",
    "Entry",
    "Purpose",
    "Release",
    "gathered_id",
    "parse_release",
]

#: 1: losses without invariants, which assumed equal sample count.
FORMAT = 2
Purpose = Literal["release", "evaluation"]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
#: Above it a product with an epsilon would no longer be exact in the count.
_MAX_VECTORS = 2**53
_ID = re.compile(r"[0-9a-f]{32}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")


@dataclass(frozen=True)
class Entry:
    """One input of a release.

    Attributes:
        input: Its id or relative path, as given.
        sha256: SHA-256 of the input audio: what makes two inputs the same utterance.
        vectors: Number of released content vectors K.
        losses: What each stream costs, e.g. ``{"pitch": Loss, "content": Loss}``, each per
            utterance or per vector.
        speaker: Whose speech it is, where that is known.
        earlier: How often the same system released this input before, for the same purpose.
    """

    input: str
    sha256: str
    vectors: int
    losses: Mapping[str, Loss]
    speaker: str | None = None
    earlier: int = 0

    def __post_init__(self) -> None:
        """Validate the fields."""
        where = f"input {self.input!r}"
        if not isinstance(self.input, str) or not self.input:
            raise PrivacyError(f"an input of a release needs a name, got {self.input!r}")
        if not isinstance(self.sha256, str) or not _SHA256.match(self.sha256):
            raise PrivacyError(f"{where}: sha256 must be 64 hexadecimal digits, got {self.sha256!r}")
        if isinstance(self.vectors, bool) or not isinstance(self.vectors, int) or self.vectors < 1:
            raise PrivacyError(f"{where}: vectors must be a whole number of at least 1, got {self.vectors!r}")
        if self.vectors > _MAX_VECTORS:
            raise PrivacyError(f"{where}: vectors must be at most {_MAX_VECTORS}")
        if not self.losses:
            raise PrivacyError(f"{where}: no losses; a release without noise has the identity's")
        for name, loss in self.losses.items():
            if not isinstance(loss, Loss):
                raise PrivacyError(f"{where}: {name} must be a Loss, got {loss!r}")
        if self.speaker is not None and (not isinstance(self.speaker, str) or not self.speaker):
            raise PrivacyError(f"{where}: speaker must be a name or None, got {self.speaker!r}")
        if isinstance(self.earlier, bool) or not isinstance(self.earlier, int) or self.earlier < 0:
            raise PrivacyError(f"{where}: earlier must be a whole number of at least 0, got {self.earlier!r}")

    @property
    def utterance(self) -> Loss:
        """The loss of the whole utterance: streams add, a loss per vector counts K times."""
        return compose(*(utterance_loss(self.losses[name], self.vectors) for name in sorted(self.losses)))

    @property
    def rho(self) -> float:
        """The zCDP rho of the whole utterance, pure streams counting too; ``inf`` where one has no noise."""
        return add_up(stream_rho(loss, self.vectors) for loss in self.losses.values())

    def to_json(self) -> dict[str, Any]:
        """Return the entry for JSON."""
        content: dict[str, Any] = {
            "input": self.input,
            "sha256": self.sha256,
            "vectors": self.vectors,
            "losses": {name: loss.to_json() for name, loss in self.losses.items()},
            "utterance": self.utterance.to_json(),
            "earlier": self.earlier,
        }
        return content if self.speaker is None else {**content, "speaker": self.speaker}


@dataclass(frozen=True)
class Release:
    """One run over a list of inputs, as announced.

    Attributes:
        id: 32 hexadecimal digits; totals count each id once.
        purpose: ``release`` or ``evaluation``.
        system: Name of the anonymization system.
        time: UTC, ``YYYY-MM-DDThh:mm:ssZ``.
        entries: The inputs.
        register: Where it was announced (not part of the record).
        version: Version of voxveil that announced it.
        settings: What else made the outputs what they are (``model``: SHA-256, ``loudness``: LUFS, ...);
            a later run into the same folder is held against it. May be empty.
        parts: Ids of the releases this record was gathered from, sorted (:mod:`voxveil.privacy.gathered`);
            those were announced, each with some of the inputs, this one was not.
    """

    id: str
    purpose: Purpose
    system: str
    time: str
    entries: tuple[Entry, ...]
    register: str = ""
    version: str = __version__
    settings: Mapping[str, str | float] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The largest utterance epsilon in nat, under :attr:`invariants`; ``inf`` where none holds."""
        return max(entry.utterance.epsilon for entry in self.entries)

    @property
    def rho(self) -> float | None:
        """The largest utterance rho where one was released under zCDP, else None; ``inf`` is no promise."""
        if all(entry.utterance.rho is None for entry in self.entries):
            return None
        return max(entry.rho for entry in self.entries)

    @property
    def invariants(self) -> frozenset[str]:
        """All invariants of its losses: its claims hold for neighbours that are equal in them."""
        losses = (loss for entry in self.entries for loss in entry.losses.values())
        return frozenset().union(*(loss.invariants for loss in losses))

    @property
    def public_by_definition(self) -> tuple[str, ...]:
        """Public facts of an input beside its release, without its path where outputs have random names."""
        path = () if self.settings.get("names") == "random" else ("relative path",)
        return (*public_facts(self.invariants), *path, "accepted or refused")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the person who started the run, one line each."""
        redrawn = [entry for entry in self.entries if entry.earlier]
        if not redrawn:
            return ()
        times = max(entry.earlier for entry in redrawn) + 1
        return (
            f"system {self.system}: {len(redrawn)} of {len(self.entries)} inputs were announced before"
            f" (purpose {self.purpose}) and are charged again, up to {times} times in all"
            " ('voxveil ledger total')",
        )

    def require(self, name: str, losses: Mapping[str, Loss], vectors: int) -> None:
        """Check that an input's release matches its announcement; call it before writing.

        Raises:
            PrivacyError: The input was not announced, or with other losses or fewer vectors.
        """
        entry = self._by_input.get(name)
        if entry is None:
            raise PrivacyError(
                f"input {name}: was not announced in release {self.id}; nothing is written of it"
            )
        if (dict(losses), vectors) != (dict(entry.losses), entry.vectors):
            raise PrivacyError(
                f"input {name}: released {vectors} vectors at {_amounts(losses)}, announced were"
                f" {entry.vectors} at {_amounts(entry.losses)}; nothing is written of it"
            )

    @cached_property
    def _by_input(self) -> dict[str, Entry]:
        return {entry.input: entry for entry in self.entries}

    def to_json(self) -> dict[str, Any]:
        """Return the immutable record, as ledger.json and the register hold it."""
        words = words_of(self.invariants)
        content: dict[str, Any] = {
            "format": FORMAT,
            "release": self.id,
            "purpose": self.purpose,
            "system": self.system,
            "time": self.time,
            "version": self.version,
            "neighbours": neighbours_text(self.invariants),
            "public_by_definition": list(self.public_by_definition),
            "entries": [entry.to_json() for entry in self.entries],
        }
        for name, value in (("epsilon", self.epsilon), ("rho", self.rho)):
            if value is None:
                continue
            if words:
                # What holds given recognized words must not be read as if it held for any two utterances.
                content[f"{name}_max"] = "none"
            content[f"{name}_given_words_max" if words else f"{name}_max"] = _number(value)
        if self.parts:
            content["parts"] = list(self.parts)
        return {**content, "settings": dict(self.settings)} if self.settings else content


def gathered_id(parts: Iterable[str]) -> str:
    """Return the id of the record that is gathered from releases: it follows from theirs."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:32]


def _amounts(losses: Mapping[str, Loss]) -> str:
    return ", ".join(f"{name} {loss.amount} per {loss.unit}" for name, loss in sorted(losses.items()))


def parse_release(content: bytes, where: str) -> Release:
    """Read a record and check that its figures follow from its losses.

    Args:
        content: JSON.
        where: Names the record in errors.

    Raises:
        InputError: With what was got and what is allowed.
    """
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        # ValueError: also a number of more digits than Python converts.
        raise InputError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") not in (1, FORMAT):
        got = record.get("format") if isinstance(record, dict) else type(record).__name__
        raise InputError(f"{where}: must be a ledger of format 1 or {FORMAT}, got {reprlib.repr(got)}")
    for name, pattern in (("release", _ID), ("time", _TIME)):
        if not isinstance(record.get(name), str) or not pattern.match(record[name]):
            raise InputError(f"{where}: {name} is not valid, got {reprlib.repr(record.get(name))}")
    purpose = record.get("purpose")
    if purpose not in ("release", "evaluation"):
        raise InputError(f"{where}: purpose must be 'release' or 'evaluation', got {reprlib.repr(purpose)}")
    for name in ("system", "version"):
        if not isinstance(record.get(name), str):
            raise InputError(f"{where}: {name} must be text, got {reprlib.repr(record.get(name))}")
    entries = record.get("entries")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{where}: entries must be a list that is not empty")
    parts = _parts(record, where)
    settings = record.get("settings", {})
    if not isinstance(settings, dict) or not all(isinstance(v, str | int | float) for v in settings.values()):
        raise InputError(f"{where}: settings must be a mapping to words and numbers, got {settings!r}")
    release = Release(
        id=record["release"],
        purpose=purpose,
        system=record["system"],
        time=record["time"],
        entries=tuple(_entry(entry, where) for entry in entries),
        version=record["version"],
        settings=settings,
        parts=parts,
    )
    try:
        same = release.to_json() == (_upgraded(record) if record["format"] == 1 else record)
    except (OverflowError, RecursionError, KeyError, TypeError):
        same = False
    if not same:
        raise InputError(f"{where}: its figures contradict its losses; was it edited?")
    return release


def _upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 in the format of today: its losses assume equal sample count."""
    assumed = {"invariants": [LENGTH]}
    entries = [
        {
            **entry,
            "losses": {name: {**loss, **assumed} for name, loss in entry["losses"].items()},
            "utterance": {**entry["utterance"], **assumed},
        }
        for entry in record["entries"]
    ]
    return {**record, "format": FORMAT, "entries": entries}


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def _parts(record: dict[str, Any], where: str) -> tuple[str, ...]:
    if "parts" not in record:
        return ()
    parts = record["parts"]
    good = isinstance(parts, list) and all(isinstance(part, str) and _ID.match(part) for part in parts)
    if not good or len(parts) < 2 or parts != sorted(set(parts)):
        raise InputError(f"{where}: parts must be different release ids, sorted, got {reprlib.repr(parts)}")
    if record["release"] != gathered_id(parts):
        raise InputError(f"{where}: release is not the id that follows from its parts")
    return tuple(parts)


def _entry(content: Any, where: str) -> Entry:
    try:
        return Entry(
            input=content["input"],
            sha256=content["sha256"],
            vectors=content["vectors"],
            losses={name: Loss.from_json(loss) for name, loss in content["losses"].items()},
            speaker=content.get("speaker"),
            earlier=content["earlier"],
        )
    except KeyError as error:
        raise InputError(f"{where}: an entry lacks {error}") from None
    except (TypeError, AttributeError):
        raise InputError(f"{where}: not a valid entry, got {reprlib.repr(content)}") from None
    except PrivacyError as error:
        text = str(error)
        raise InputError(f"{where}: {text if len(text) <= 300 else text[:300] + '...'}") from None
