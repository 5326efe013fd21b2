"""Gathering of the shares of a stage's work into the outputs that the stage itself writes.

A share (:func:`voxveil.stages.run.run_share`) states its number, its inputs, and which items of the whole it
holds. Nothing is gathered unless every share is given once, all have the same inputs and parameters, and
every item is in exactly one of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from voxveil.corpus.split import Split, SplitWriter
from voxveil.privacy.gathered import gather_releases
from voxveil.privacy.ledger import read_ledger, write_ledger
from voxveil.runtime.atomic import read_json, whole_directory, write_bytes, write_json
from voxveil.runtime.done import Done, finish, require_done
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.stages.context import PART, Share
from voxveil.stages.registry import stage_spec
from voxveil.stages.run import SHARE

__all__ = ["gather_stage"]

#: Each item of the whole in order, with the place of the share that holds it.
_Order = list[tuple[int, str]]


def gather_stage(
    stage: str, key: str, folders: Sequence[Path], outputs: Mapping[str, Path], count: int
) -> dict[str, Done]:
    """Put the shares of a stage together and return the completion record of each output.

    Args:
        stage: Stem of the stage.
        key: System.
        folders: Finished shares, in any order.
        outputs: Folder of each output of the stage; replaced whole.
        count: How many shares there must be.

    Raises:
        InputError: A share is missing, there twice, of another run, or an item is missing or there twice;
            nothing was written.
        PrivacyError: What was announced is not what is there.
    """
    names = [port.name for port in stage_spec(stage).outputs]
    if stage not in _GATHERERS or sorted(outputs) != sorted(names):
        raise InputError(
            f"stage {stage}: has no shares to gather into {', '.join(outputs) or 'nothing'};"
            f" allowed: all outputs of {' or '.join(_GATHERERS)}"
        )
    parts = _in_order(stage, key, folders, count)
    with ExitStack() as stack:
        targets = {port: stack.enter_context(whole_directory(Path(path))) for port, path in outputs.items()}
        _GATHERERS[stage](parts, targets)
        return {port: finish(folder, stage, key, port) for port, folder in targets.items()}


def _in_order(stage: str, key: str, folders: Sequence[Path], count: int) -> list[Path]:
    """Return the shares by number, after checking that they are complete and of one run."""
    found: dict[int, tuple[Path, dict[str, Any]]] = {}
    for folder in folders:
        done = require_done(folder, "shares")
        if (done.stage, done.key) != (f"{stage}_share", key):
            raise InputError(
                f"input shares: {folder} is output of {done.stage}[{done.key}],"
                f" must be a share of {stage}[{key}]"
            )
        facts = _read(folder / SHARE, share=str, fingerprint=str, inputs=dict)
        share = Share.parse(facts["share"])
        if share.count != count:
            raise InputError(f"input shares: {folder} is share {share}, must be one of {count}")
        if share.number in found:
            raise InputError(f"input shares: share {share} is there twice")
        found[share.number] = (folder, facts)
    missing = [Share(number, count) for number in range(1, count + 1) if number not in found]
    if missing:
        raise InputError(f"input shares: share {missing[0]} is missing ({len(missing)} of {count} are)")
    for number in range(2, count + 1):
        _check_alike(found[1][1], found[number][1])
    return [found[number][0] for number in sorted(found)]


def _check_alike(first: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise an error if two shares are not of one run."""
    for port in sorted({*first["inputs"], *other["inputs"]}):
        if first["inputs"].get(port) != other["inputs"].get(port):
            raise InputError(
                f"input shares: {first['share']} and {other['share']} were made from different input {port}"
            )
    if first["fingerprint"] != other["fingerprint"]:
        raise InputError(
            f"input shares: {first['share']} and {other['share']} were made with different parameters or"
            " versions of voxveil"
        )


def _places(folders: Sequence[Path], what: str) -> _Order:
    """Return every item of the whole in its order, after checking that each is in exactly one share."""
    order: dict[int, tuple[int, str]] = {}
    holders: dict[str, int] = {}
    sizes = set()
    for number, folder in enumerate(folders):
        part = _read(folder / PART, of=int, places=dict)
        sizes.add(part["of"])
        for item, position in part["places"].items():
            if item in holders:
                raise InputError(
                    f"{what} {item}: is in two shares, {holders[item] + 1} and {number + 1} of {len(folders)}"
                )
            if type(position) is not int or position in order:
                raise InputError(
                    f"{what} {item}: position {position!r} must be a whole number that no other {what} has"
                )
            holders[item] = number
            order[position] = (number, item)
    if len(sizes) != 1:
        raise InputError(f"{what}: the shares state different totals, {sorted(sizes)}; they must be equal")
    (size,) = sizes
    if set(order) != set(range(size)):
        raise InputError(f"{what}: {len(set(range(size)) - set(order))} of {size} are in no share")
    return [order[position] for position in range(size)]


def _gather_anonymized(parts: Sequence[Path], outputs: Mapping[str, Path]) -> None:
    """Gather ``released``, ``attacker`` and ``samples``."""
    for port in ("released", "attacker"):
        order = _gather_split([part / port for part in parts], outputs[port], port)
        if port == "released":
            releases = [read_ledger(part / port / "ledger.json") for part in parts]
            write_ledger(outputs[port], gather_releases(releases, [item for _, item in order]))
    _gather_samples([part / "samples" for part in parts], outputs["samples"])


def _gather_split(folders: Sequence[Path], target: Path, port: str) -> _Order:
    order = _places(folders, f"{port} utterance")
    splits = [Split(folder) for folder in folders]
    held: list[set[str]] = [set() for _ in splits]
    for number, item in order:
        held[number].add(item)
    for folder, split, items in zip(folders, splits, held, strict=True):
        if {utterance.id for utterance in split} != items:
            raise IncompleteInputError(f"{folder}: {PART} names other utterances than the split beside it")
    with SplitWriter(target) as writer:
        for number, item in order:
            writer.add(splits[number][item], splits[number].flac(item))
    write_json(target / "summary.json", _summed([folder / "summary.json" for folder in folders]))
    write_json(target / "corpus.json", _alike([read_json(f / "corpus.json") for f in folders], "corpus.json"))
    return order


def _gather_samples(folders: Sequence[Path], target: Path) -> None:
    order = _places(folders, "sample")
    tables = [read_json(folder / "samples.json") for folder in folders]
    rows = [{row["utterance"]: row for row in table["utterances"]} for table in tables]
    for number, item in order:
        if item not in rows[number]:
            raise IncompleteInputError(f"{folders[number]}: sample {item} is not in samples.json")
        for state in ("original", "anonymized"):
            name = rows[number][item][state]
            write_bytes(target / name, (folders[number] / name).read_bytes())
    facts = _alike([{**table, "utterances": []} for table in tables], "samples.json")
    write_json(
        target / "samples.json", {**facts, "utterances": [rows[number][item] for number, item in order]}
    )


def _gather_scores(parts: Sequence[Path], outputs: Mapping[str, Path]) -> None:
    """Gather ``ATTACKER/SCENARIO/``; a scenario is in one share, with all its attackers."""
    folders = [part / "scores" for part in parts]
    for number, scenario in _places(folders, "scenario"):
        found = sorted(folders[number].glob(f"*/{scenario}"))
        if not found:
            raise IncompleteInputError(
                f"{folders[number]}: has no scores of scenario {scenario}, which its {PART} names"
            )
        for folder in found:
            shutil.copytree(folder, outputs["scores"] / folder.parent.name / scenario)


#: What each stage's shares are put together by.
_GATHERERS: Mapping[str, Callable[[Sequence[Path], Mapping[str, Path]], None]] = {
    "anonymize": _gather_anonymized,
    "score": _gather_scores,
}


def _summed(paths: Sequence[Path]) -> dict[str, Any]:
    """Add up the counts of summaries that are of one system."""
    tables = [read_json(path) for path in paths]
    counts = ("utterances", "clipped_samples", "clipped_utterances")
    facts = _alike([{**table, **dict.fromkeys(counts, 0)} for table in tables], "summary.json")
    return {**facts, **{name: sum(table[name] for table in tables) for name in counts}}


def _alike(tables: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the content that all shares have in common."""
    if any(table != tables[0] for table in tables[1:]):
        raise InputError(f"input shares: their {name} differ; all shares must be of one run")
    return tables[0]


def _read(path: Path, **kinds: type) -> dict[str, Any]:
    """Read a JSON file of a share and check the types of its values."""
    content = read_json(path)
    if not isinstance(content, dict) or any(
        type(content.get(name)) is not kind for name, kind in {"format": int, **kinds}.items()
    ):
        raise IncompleteInputError(f"{path}: not of a share of a stage's work")
    return content
