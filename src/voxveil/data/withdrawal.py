"""Consent withdrawn: where a speaker is, what can be taken back, and what cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.data.adding import Reports
from voxveil.data.cleaning import DVC_GC, collect_data, collect_runs, in_the_way, mlflow_commands
from voxveil.data.errors import DataError
from voxveil.data.face import Face
from voxveil.data.forgetting import current_datasets, forget_speaker
from voxveil.data.holdings import Holding, Output, holdings_in_git, outputs_with
from voxveil.data.listing import table
from voxveil.data.mlflow_runs import FoundRun, found_runs, store_of
from voxveil.data.place import FOLDER, Place, check_name
from voxveil.errors import InputError, PrivacyError
from voxveil.privacy.ledger import registered
from voxveil.privacy.record import Release
from voxveil.privacy.register import open_register
from voxveil.storage.atomic import read_json
from voxveil.tracking.store import Store

__all__ = ["Everywhere", "clean_up", "find_everywhere", "print_everywhere", "withdraw"]


@dataclass
class Everywhere:
    """Where a speaker is.

    Attributes:
        speaker: Speaker id.
        holdings: Committed dataset versions.
        current: Datasets of the work tree.
        outputs: Finished outputs that name them.
        releases: Registered releases of their speech, with the number of entries.
        store: The MLflow store; None if there is none.
        runs: Its runs made from data that hold them.
        gaps: What could not be searched, one line each.
        imported: Datasets whose archive still lies at the address it came from.
    """

    speaker: str
    holdings: list[Holding]
    current: list[Place]
    outputs: list[Output]
    releases: list[tuple[Release, int]]
    store: Store | None = None
    runs: list[FoundRun] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)


def find_everywhere(root: Path, speaker: str, names: Sequence[str]) -> Everywhere:
    """Search datasets, outputs, register and MLflow; what cannot be searched becomes a gap.

    Args:
        root: Folder that holds ``.dvc``.
        speaker: Speaker id.
        names: Datasets to look at; all if empty.
    """
    for name in names:
        check_name(name)
    if not speaker.strip() or "/" in speaker:
        raise InputError(f"speaker {speaker!r}: must be a speaker id")
    holdings, gaps = holdings_in_git(root, speaker, names)
    current = current_datasets(root, speaker, names)
    utterances = {row.utterance for holding in holdings for row in holding.rows}
    for place in current:
        utterances |= _utterances(place, speaker)
    outputs = outputs_with(root, speaker, utterances)
    found = Everywhere(speaker, holdings, current, outputs, [], gaps=gaps)
    try:
        found.releases = _releases(root, speaker, utterances)
    except PrivacyError as error:
        gaps.append(f"{error}; not searched")
    hashes = {holding.manifest_sha256 for holding in holdings} | _revisions(outputs)
    found.store = store_of(root)
    if found.store is not None:
        try:
            found.runs = found_runs(found.store, hashes - {""})
        except DataError as error:
            gaps.append(f"{error}; not searched")
    found.imported = sorted(
        {each for each in (h.dataset for h in holdings) if (root / FOLDER / f"{each}.tar.gz.dvc").is_file()}
    )
    return found


def print_everywhere(found: Everywhere) -> None:
    """Print where the speaker is, and what was not searched."""
    print(f"speaker {found.speaker}")
    print(f"\ndataset versions: {len(found.holdings) or 'none'}")
    print(
        table(
            ("dataset", "revision", "date", "utterances", "seconds"),
            [
                [
                    each.dataset,
                    each.commit[:12],
                    each.date,
                    str(len(each.rows)),
                    f"{sum(row.milliseconds for row in each.rows) / 1000:.1f}",
                ]
                for each in found.holdings
            ],
        )
        if found.holdings
        else "",
        end="",
    )
    print(f"now in: {', '.join(f'data/{place.name}' for place in found.current) or 'no dataset'}")
    print(f"\noutputs: {len(found.outputs) or 'none'}")
    for output in found.outputs:
        print(f"  {_short(output.folder)} ({output.stage}): {_some(output.files)}")
    if found.outputs:
        print("  what was trained or measured on these holds them too: new version, then 'dvc repro'")
    print(f"\nreleases in the register: {len(found.releases) or 'none'}")
    for release, entries in found.releases:
        print(f"  {release.time} {release.id} {release.purpose} {release.system}: {entries} entries")
    if found.releases:
        print(
            "  entries are never removed, they say what was spent; whoever has the released speech keeps it"
        )
    where = found.store.shown if found.store else "no MLflow store here"
    print(f"\nMLflow runs of their data ({where}): {len(found.runs) or 'none'}")
    for run in found.runs:
        print(f"  {run.id} {run.experiment}: {run.name}")
    for gap in found.gaps:
        print(f"\nnot searched: {gap}")
    if found.holdings or found.current:
        print(f"\n{_remains(found)}")


def withdraw(root: Path, found: Everywhere, reports: Reports) -> Iterator[tuple[str, Face]]:
    """Write the next version of every current dataset without the speaker, and yield each.

    Raises:
        InputError: No dataset of the work tree holds them.
    """
    if not found.current:
        raise InputError(f"speaker {found.speaker}: in no dataset of the work tree; nothing was changed")
    for place in found.current:
        yield place.name, forget_speaker(place, found.speaker, reports)


def clean_up(root: Path, found: Everywhere) -> int:
    """Delete for good the data that no current version needs, and the MLflow runs; say what was done.

    Raises:
        InputError: Something stands in the way; nothing was deleted.
        DataError: DVC or MLflow refuses.
    """
    obstacles = in_the_way(root, found.holdings, [place.name for place in found.current])
    if found.gaps:
        obstacles += [f"not searched: {gap}" for gap in found.gaps]
    if obstacles:
        for line in obstacles[:-1]:
            print(line)
        raise InputError(f"{obstacles[-1]}; nothing was deleted ({len(obstacles)} in the way)")
    print(f"dvc {' '.join(DVC_GC)}: {collect_data(root)}")
    if found.runs and found.store is not None:
        print(f"MLflow: {collect_runs(root, found.store, found.runs)}")
    for output in found.outputs:
        print(
            f"still there: {_short(output.folder)}; 'dvc repro' (or delete it), 'dvc push', then --gc again"
        )
    print(_kept(found))
    return 1 if found.outputs else 0


def _remains(found: Everywhere) -> str:
    speaker = found.speaker
    lines = [
        "to take them out:",
        f"  voxveil data forget {speaker} --yes     # on every branch that is still used",
        "  git commit, dvc repro, dvc push, git push",
        f"  voxveil data forget {speaker} --gc      # checks that no branch or tag holds them, then runs:",
        f"    dvc {' '.join(DVC_GC)}",
        *(f"    {line}" for line in (_runs(found))),
        "  dvc gc deletes every version that is at the tip of no branch or tag, of every dataset and output,",
        "  and the data of experiments that are no branch.",
        _kept(found),
    ]
    return "\n".join(lines)


def _runs(found: Everywhere) -> list[str]:
    return mlflow_commands(found.store, found.runs) if found.store and found.runs else []


def _kept(found: Everywhere) -> str:
    lines = [
        "what stays:",
        f"  Git: {len(found.holdings)} revisions name them in manifests (ids, sex, seconds, SHA-256; no"
        " audio); only rewriting the history of every clone removes that (git filter-repo)",
        "  every other clone and its DVC cache, until 'git pull', 'dvc pull' and 'dvc gc' there",
        "  the bucket: deleted objects until its lifecycle rule drops them (data init: 90 days unless told)",
        "  models trained on their speech, wherever they were registered: train again, retire the old ones",
        "  backups and whatever was copied out of here: nothing here reaches those",
    ]
    for name in found.imported:
        lines.append(f"  the archive that data/{name}.tar.gz.dvc names still holds them at its address")
    return "\n".join(lines)


def _revisions(outputs: Sequence[Output]) -> set[str]:
    """Return the digests of prepared corpora, of both sides: a run names that of the private one alone."""
    found = set()
    for output in outputs:
        if output.revision:
            for path in output.folder.parent.glob("*/corpus.json"):
                found.add(str(read_json(path).get("revision", "")))
    return found


def _releases(root: Path, speaker: str, utterances: set[str]) -> list[tuple[Release, int]]:
    counted = []
    for release in registered(open_register()):
        entries = sum(each.speaker == speaker or each.input in utterances for each in release.entries)
        if entries:
            counted.append((release, entries))
    return counted


def _utterances(place: Place, speaker: str) -> set[str]:
    from voxveil.data.face import parse_manifest
    from voxveil.data.holdings import speaker_rows

    rows = parse_manifest(place.manifest.read_text(encoding="utf-8"), str(place.manifest))
    return {row.utterance for row in speaker_rows(rows, speaker)}


def _short(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def _some(files: Sequence[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
