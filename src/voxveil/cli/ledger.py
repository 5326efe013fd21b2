"""``voxveil ledger``: what has been released, what it costs in all, and whether the books are right."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from voxveil.privacy.gathered import gathered_fault
from voxveil.privacy.invariants import GIVEN_WORDS, condition_text, words_of
from voxveil.privacy.ledger import read_ledger, registered
from voxveil.privacy.record import Release
from voxveil.privacy.register import open_register
from voxveil.privacy.totals import SpeakerTotal, UtteranceTotal, speaker_totals, utterance_totals
from voxveil.privacy.zcdp import DELTA, approximate
from voxveil.runtime.atomic import dump_json
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.runtime.terminal import align_columns

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Show what has been released, add up what it costs, check the books."

EPILOG = """The register is VOXVEIL_LEDGER (a folder or s3://BUCKET/PREFIX), by default $DVC_ROOT/ledger,
else ./ledger. Every announced release counts once, finished or not; an output restored from a
cache costs nothing. Epsilons of repeated releases of an utterance add; a speaker's total is the
sum over everything released of that speaker. Gaussian noise has a zCDP rho and no epsilon: where it
takes part the total is a rho, and the epsilon it stands for at delta 1e-6, in columns of their own.
What was released given the recognized words has no unconditional epsilon: the total reads 'none', and
a column for each recognizer has what holds given its words, errors included.

examples:
  voxveil ledger show
  voxveil ledger show --delta 1e-6
  voxveil ledger total
  voxveil ledger total --speaker 61 --purpose release
  voxveil ledger total --utterance 61-70968-0000
  voxveil ledger verify private/ledger.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil ledger``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list the releases, oldest first")
    show.add_argument(
        "--delta",
        type=float,
        metavar="D",
        help="also the worst utterance's epsilon at this delta (extra 'dp')",
    )
    total = actions.add_parser("total", help="add up what utterances and speakers have cost")
    total.add_argument("--speaker", metavar="ID", help="this speaker and their utterances only")
    total.add_argument(
        "--utterance",
        metavar="NAME",
        help="this utterance only: its name as given, or the SHA-256 of its audio",
    )
    verify = actions.add_parser("verify", help="check every record, and ledger files against the register")
    verify.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="ledger.json files, or folders searched for them"
    )
    for action in (show, total):
        action.add_argument("--purpose", choices=("release", "evaluation"), help="of this purpose only")
        action.add_argument("--system", metavar="NAME", help="of this system only")
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (show, total, verify):
        action.add_argument(
            "--register", metavar="PLACE", help="folder or s3://BUCKET/PREFIX of the register"
        )


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 only when every record is sound.

    Raises:
        InputError: The register is not there: with ``--register`` always, else (no release was made
            yet) where there should be something to verify.
    """
    register = open_register(args.register)
    exists = register.exists()
    if args.register is not None and not exists:
        raise InputError(f"register {register.location}: does not exist; --register must name one that does")
    if args.action == "verify" and not exists:
        raise InputError(f"register {register.location}: does not exist yet; the first release makes it")
    releases = registered(register)
    if args.action == "verify":
        return _verify(releases, args.paths, register.location)
    kept = [
        release
        for release in releases
        if args.purpose in (None, release.purpose) and args.system in (None, release.system)
    ]
    content = (
        _totals(kept, args.speaker, args.utterance) if args.action == "total" else _show(kept, args.delta)
    )
    if args.json:
        sys.stdout.write(dump_json(content))
    elif not kept:
        absent = "" if exists else "no register yet, "
        print(f"register {register.location}: {absent}nothing has been released")
    elif args.action == "total":
        _print_totals(content, args.purpose)
    else:
        _print_releases(content["releases"], [] if args.delta is None else ["epsilon_delta"])
    return 0


#: Fields of a total by the heading of their column.
_SPEAKER_COLUMNS = {
    "speaker": "speaker",
    "utterances": "utterances",
    "releases": "releases",
    "epsilon": "epsilon",
    "worst utterance": "worst",
}
_UTTERANCE_COLUMNS = {
    "utterance": "inputs",
    "speaker": "speakers",
    "releases": "releases",
    "epsilon": "epsilon",
}
_SHOWN = ("time", "release", "purpose", "system", "inputs", "redrawn", "epsilon_max", "mechanisms")
#: Figures that hold under the invariants of what they add up.
_FIGURES = ("epsilon", "worst", "rho", "epsilon_delta")


def _show(releases: Sequence[Release], delta: float | None) -> dict[str, Any]:
    return {"delta": delta, "releases": [_release(release, delta) for release in releases]}


def _print_releases(releases: Sequence[dict[str, Any]], more: list[str]) -> None:
    concentrated = any(item["rho_max"] is not None for item in releases)
    conditional = any(item["given"] for item in releases)
    header = [*_SHOWN, *(["rho_max"] if concentrated else []), *more]
    header += ["epsilon_max_given", "given"] if conditional else []
    _print_table({name: name for name in header}, releases)


def _release(release: Release, delta: float | None) -> dict[str, Any]:
    row = {
        "time": release.time,
        "release": release.id,
        "purpose": release.purpose,
        "system": release.system,
        "inputs": len(release.entries),
        "redrawn": sum(1 for entry in release.entries if entry.earlier),
        "given": list(words_of(release.invariants)),
        "epsilon_max": _number(release.epsilon),
        "rho_max": _number(release.rho),
        "mechanisms": ", ".join(
            sorted({loss.mechanism for entry in release.entries for loss in entry.losses.values()})
        ),
    }
    if delta is not None:
        from voxveil.privacy.audit.accounting import approximate_epsilon

        worst = max(release.entries, key=lambda entry: entry.utterance.size)
        row["epsilon_delta"] = _number(approximate_epsilon(worst.losses, worst.vectors, delta))
    return _conditional(row, ("epsilon_max", "rho_max", "epsilon_delta"), release.invariants)


def _conditional(row: dict[str, Any], names: Sequence[str], invariants: Iterable[str]) -> dict[str, Any]:
    """Return a row with its figures under ``NAME_given`` too; given recognized words the others are ``none``.

    Args:
        row: With the figures that hold under its invariants.
        names: Of the figures, as far as the row has them.
        invariants: What the figures hold under.
    """
    figures = {name: row[name] for name in names if name in row}
    unconditional = figures
    if words_of(invariants):
        unconditional = {name: None if value is None else "none" for name, value in figures.items()}
    return {**row, **unconditional, **{f"{name}_given": value for name, value in figures.items()}}


def _totals(releases: Sequence[Release], speaker: str | None, utterance: str | None) -> dict[str, Any]:
    utterances = utterance_totals(releases)
    speakers = speaker_totals(releases)
    if speaker is not None:
        utterances = [total for total in utterances if speaker in total.speakers]
        speakers = [total for total in speakers if total.speaker == speaker]
        if not speakers:
            raise InputError(f"--speaker {speaker}: the register has no release of this speaker")
    if utterance is not None:
        utterances = [total for total in utterances if utterance in (*total.inputs, total.sha256)]
        owners = {owner for total in utterances for owner in total.speakers}
        speakers = [total for total in speakers if total.speaker in owners]
        if not utterances:
            raise InputError(f"--utterance {utterance}: the register has no release of this name or SHA-256")
    return {
        "unit": "nat; per utterance and, as a group of utterances, per speaker",
        "releases": len({release.id for release in releases}),
        "speakers": [_total(total) for total in speakers],
        "utterances": [_total(total) for total in utterances],
        "delta": DELTA,
        "unattributed": sum(1 for total in utterances if not total.speakers),
        "zcdp": sum(1 for total in utterances if total.rho is not None),
        "conditional": sum(1 for total in utterances if words_of(total.invariants)),
        "condition": GIVEN_WORDS,
        **_maximum("epsilon_utterance_max", utterances),
        **_maximum("epsilon_speaker_max", speakers),
    }


def _maximum(name: str, totals: Sequence[SpeakerTotal | UtteranceTotal]) -> dict[str, Any]:
    row = {name: _number(max((total.epsilon for total in totals), default=0.0))}
    return _conditional(row, (name,), {value for total in totals for value in total.invariants})


def _total(total: SpeakerTotal | UtteranceTotal) -> dict[str, Any]:
    delta = None if total.rho is None else approximate(total.rho)
    row = {name: _number(value) for name, value in {**asdict(total), "epsilon_delta": delta}.items()}
    return _conditional(row, _FIGURES, total.invariants)


def _pure(item: dict[str, Any], name: str, rho: str = "rho") -> Any:
    """Return a pure epsilon for a table; where Gaussian noise took its place there is none to give."""
    return "none (zCDP)" if item[name] == "inf" and item[rho] not in (None, "inf") else item[name]


def _largest(items: Sequence[dict[str, Any]]) -> str:
    found = [_pure(item, "epsilon") for item in items]
    if "none" in found:
        return "none"
    for word in ("inf", "none (zCDP)"):
        if word in found:
            return f"{_text(word)} nat" if word == "inf" else word
    return f"{_text(max(found, default=0.0))} nat"


def _print_totals(content: dict[str, Any], purpose: str | None) -> None:
    totals = (*content["speakers"], *content["utterances"])
    concentrated = any(item["rho"] is not None for item in totals)
    more = {"zCDP rho": "rho", f"epsilon at delta {DELTA:g}": "epsilon_delta"} if concentrated else {}
    for name, columns in (("speakers", _SPEAKER_COLUMNS), ("utterances", _UTTERANCE_COLUMNS)):
        if content[name]:
            given, rows = _given_columns(content[name], concentrated)
            _print_table({**columns, **more, **given}, rows)
            print()
    scope = f"purpose {purpose}" if purpose else "all purposes"
    print(
        f"{content['releases']} releases ({scope}); largest utterance total"
        f" {_largest(content['utterances'])}; largest speaker total"
        f" {_largest(content['speakers']) if content['speakers'] else 'unknown'}"
    )
    if content["zcdp"]:
        print(f"{content['zcdp']} utterances had Gaussian noise: they have a zCDP rho and no pure epsilon")
    if content["conditional"]:
        print(
            f"{content['conditional']} utterances were released {GIVEN_WORDS}: they have no unconditional"
            " total, and the words themselves are not protected"
        )
    if content["unattributed"]:
        print(f"{content['unattributed']} utterances name no speaker and are in no speaker's total")


def _given_columns(
    items: Sequence[dict[str, Any]], concentrated: bool
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return a column for each set of recognizers among totals, by heading, and the rows with them.

    A total holds in the column of every set that has all of its own recognizers, else it reads ``none``.
    """
    sets = sorted(
        {words_of(item["invariants"]) for item in items} - {()}, key=lambda words: (len(words), words)
    )
    columns: dict[str, str] = {}
    rows = [dict(item) for item in items]
    for words in sets:
        for title, name in (("epsilon", "epsilon"), *([("zCDP rho", "rho")] if concentrated else [])):
            column = f"{title} {condition_text(words)}"
            columns[column] = column
            for row in rows:
                holds = set(words_of(row["invariants"])) <= set(words)
                row[column] = (
                    _pure(row, f"{name}_given", "rho_given") if name == "epsilon" else row["rho_given"]
                )
                row[column] = row[column] if holds else "none"
    return columns, rows


def _verify(releases: Sequence[Release], paths: Sequence[Path], place: str) -> int:
    known = {release.id: release for release in releases}
    files = [file for path in paths for file in _ledger_files(path)]
    faults = []
    for file in files:
        record = read_ledger(file)
        if record.parts:
            fault = gathered_fault(record, known)
            if fault:
                faults.append(f"{file}: {fault} {place}")
        elif record.id not in known:
            faults.append(f"{file}: release {record.id} is not in the register {place}")
        elif record.to_json() != known[record.id].to_json():
            faults.append(f"{file}: differs from release {record.id} in the register {place}")
    if faults:
        for fault in faults[:-1]:
            print(f"voxveil: error: {fault}", file=sys.stderr)
        raise PrivacyError(faults[-1])
    print(f"register {place}: {len(releases)} releases, every record is sound")
    if files:
        print(f"{len(files)} ledger files agree with it")
    return 0


def _ledger_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(path.rglob("ledger.json")) + sorted(path.rglob("ledger-*.json"))
    if not files:
        raise InputError(f"{path}: must be a ledger file or a folder with ledger.json or ledger-*.json")
    return files


def _number(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _text(value: Any) -> str:
    if value == "inf":
        return "unbounded"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(item: dict[str, Any], name: str) -> str:
    value = item[name]
    if name == "given":
        return " and ".join(value) or "-"
    if name in ("epsilon", "worst"):
        return _text(_pure(item, name))
    if name in ("epsilon_max", "epsilon_max_given"):
        return _text(_pure(item, name, name.replace("epsilon", "rho")))
    if isinstance(value, tuple):
        return ", ".join(value) or "unknown"
    return "-" if value is None else _text(value)


def _print_table(columns: Mapping[str, str], items: Sequence[dict[str, Any]]) -> None:
    cells = [list(columns), *([_cell(item, name) for name in columns.values()] for item in items)]
    print("\n".join(align_columns(cells)))
