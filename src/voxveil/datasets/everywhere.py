"""Search for a speaker in dataset versions, outputs, the register of releases, MLflow and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.datasets.dataset import FOLDER, Dataset, check_name
from voxveil.datasets.face import parse_manifest
from voxveil.datasets.forgetting import current_datasets
from voxveil.datasets.holdings import (
    Holding,
    Output,
    holdings_in_git,
    outputs_with,
    past_revisions,
    speaker_rows,
)
from voxveil.datasets.mlflow_runs import FoundModel, FoundRun, Tracked, find_tracked, stores_of
from voxveil.privacy.ledger import registered
from voxveil.privacy.record import Release
from voxveil.privacy.register import open_register
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.tracking.client import TrackingError

__all__ = ["Everywhere", "find_everywhere"]


@dataclass
class Everywhere:
    """Everything found of a speaker.

    Attributes:
        speaker: Speaker id.
        holdings: Committed dataset versions.
        current: Datasets of the work tree.
        outputs: Finished outputs that name them.
        releases: Registered releases of their speech, with the number of entries.
        tracked: Runs and models made from data that hold them, by store of MLflow.
        gaps: What could not be searched, one line each.
        imported: Datasets whose archive still lies at the address it came from.
    """

    speaker: str
    holdings: list[Holding]
    current: list[Dataset]
    outputs: list[Output]
    releases: list[tuple[Release, int]]
    tracked: list[Tracked] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[FoundRun]:
        """The runs of all stores."""
        return [run for tracked in self.tracked for run in tracked.runs]

    @property
    def models(self) -> list[FoundModel]:
        """The model versions of all stores."""
        return [model for tracked in self.tracked for model in tracked.models]


def find_everywhere(root: Path, speaker: str, names: Sequence[str]) -> Everywhere:
    """Search datasets, outputs, register and MLflow; an unsearchable one becomes a gap.

    Args:
        root: Folder that holds ``.dvc``.
        speaker: Speaker id.
        names: Datasets to look at; all if empty.
    """
    for name in names:
        check_name(name)
    if not speaker.strip() or "/" in speaker:
        raise InputError(f"speaker {speaker!r}: must be a speaker id, not empty and without '/'")
    holdings, gaps = holdings_in_git(root, speaker, names)
    current = current_datasets(root, speaker, names)
    utterances = {row.utterance for holding in holdings for row in holding.rows}
    for dataset in current:
        utterances |= _utterances(dataset, speaker)
    outputs = outputs_with(root, speaker, utterances)
    found = Everywhere(speaker, holdings, current, outputs, [], gaps=gaps)
    try:
        found.releases = _releases(root, speaker, utterances)
    except PrivacyError as error:
        gaps.append(f"{error}; not searched")
    stores = stores_of(root)
    hashes = {holding.manifest_sha256 for holding in holdings} | _revisions(outputs)
    if stores:
        hashes |= past_revisions(root, speaker)
    for store in stores:
        try:
            found.tracked.append(find_tracked(store, hashes))
        except TrackingError as error:
            gaps.append(f"{error}; not searched")
    found.imported = sorted(
        {
            dataset
            for dataset in (h.dataset for h in holdings)
            if (root / FOLDER / f"{dataset}.tar.gz.dvc").is_file()
        }
    )
    return found


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
        entries = sum(entry.speaker == speaker or entry.input in utterances for entry in release.entries)
        if entries:
            counted.append((release, entries))
    return counted


def _utterances(dataset: Dataset, speaker: str) -> set[str]:
    rows = parse_manifest(dataset.manifest.read_text(encoding="utf-8"), str(dataset.manifest))
    return {row.utterance for row in speaker_rows(rows, speaker)}
