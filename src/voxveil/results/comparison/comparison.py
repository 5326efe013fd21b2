"""Comparison of several runs as the dictionary that is written as JSON and rendered as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxveil.metrics.catalogue import METRICS
from voxveil.privacy.invariants import GIVEN_WORDS
from voxveil.results.comparison.differences import (
    Difference,
    NotPairedError,
    Scored,
    compare_entries,
    paired_intervals,
    read_scored,
)
from voxveil.results.comparison.run_results import RunResults
from voxveil.results.report.results import Attack, Summary
from voxveil.results.wording import (
    concentrated,
    concentrated_text,
    conditional,
    conditions,
    epsilon_text,
    given_text,
    loss_text,
)
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError

__all__ = ["compare_runs"]

_STREAMS = ("pitch", "content")
_INTERVALS_ALONE = "only intervals of the utility are stored"


def compare_runs(runs: Sequence[RunResults], systems: Sequence[str] = ()) -> dict[str, Any]:
    """Compare every run with the first.

    Runs of one system each are compared whatever the systems are called; else by the systems' names. A
    system that only one run has is named in a warning.

    Args:
        runs: At least two.
        systems: Only these; all unless given.

    Returns:
        ``runs``, ``warnings`` and ``blocks``, one per system, with ``facts`` and ``rows``. An infinite
        epsilon is the text ``"inf"``, an absent value None.

    Raises:
        InputError: Fewer than two runs, a system that a run does not have, or no system in two of them.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} run given; a comparison needs at least 2")
    picked = [_pick(run, systems) for run in runs]
    alone: list[str] = []
    if all(len(found) == 1 for found in picked):
        groups: list[list[Summary | None]] = [[next(iter(found.values())) for found in picked]]
    else:
        names = list(dict.fromkeys(name for found in picked for name in found))
        shared = [name for name in names if sum(name in found for found in picked) > 1]
        if not shared:
            held = "; ".join(
                f"{run.label} has {', '.join(found)}" for run, found in zip(runs, picked, strict=True)
            )
            raise InputError(
                f"no system is in two of the runs: {held} (--system, repeated, picks one of each)"
            )
        alone = [
            f"system {name} is only in {run.label}: nothing to compare it with"
            for run, found in zip(runs, picked, strict=True)
            for name in found
            if name not in shared
        ]
        groups = [[found.get(name) for found in picked] for name in shared]
    blocks = [_block(runs, group) for group in groups]
    return {
        "format": 1,
        "runs": [
            {"label": run.label, "origin": run.origin, "run_id": run.run_id, "revision": _revision(run)}
            for run in runs
        ],
        "warnings": [
            *alone,
            *dict.fromkeys(text for block in blocks for text in block.pop("warnings")),
        ],
        "blocks": blocks,
    }


def _pick(run: RunResults, systems: Sequence[str]) -> dict[str, Summary]:
    found = {summary["system"]: summary for summary in run.systems}
    if not systems:
        return found
    kept = {name: summary for name, summary in found.items() if name in systems}
    if not kept:
        raise InputError(f"{run.label}: has no system {' or '.join(systems)}; it has {', '.join(found)}")
    return kept


def _revision(run: RunResults) -> str | None:
    found = {(s.get("corpus") or {}).get("revision") for s in run.systems}
    return found.pop() if len(found) == 1 else None


def _block(runs: Sequence[RunResults], group: Sequence[Summary | None]) -> dict[str, Any]:
    keys = list(
        dict.fromkeys((a["attacker"], a["scenario"]) for s in group if s is not None for a in s["attacks"])
    )
    single = all(s is None or len(s["attacks"]) == 1 for s in group)
    # Two single attacks are held against each other whoever made them; a warning says that they differ.
    attacks = [[_first(s) for s in group]] if single else [[_attack(s, *key) for s in group] for key in keys]
    warnings = _warnings(runs, group, attacks)
    rows = [row for chosen in attacks for row in _attack_rows(runs, group, chosen)]
    return {
        "systems": [None if s is None else s["system"] for s in group],
        "facts": _facts(group),
        "rows": [*_epsilon_rows(group), *rows, *_utility_rows(group)],
        "warnings": warnings,
    }


def _first(summary: Summary | None) -> Attack | None:
    return None if summary is None else summary["attacks"][0]


def _attack(summary: Summary | None, attacker: str, scenario: str) -> Attack | None:
    for attack in () if summary is None else summary["attacks"]:
        if (attack["attacker"], attack["scenario"]) == (attacker, scenario):
            return dict(attack)
    return None


def _facts(group: Sequence[Summary | None]) -> list[dict[str, Any]]:
    """Return the facts above the numbers: privacy loss with unit and mechanism, data, replicates."""
    promised = [None if s is None else s.get("promise") for s in group]
    corpora = [None if s is None else s.get("corpus") for s in group]
    facts = {
        **{f"epsilon of {name}": [_loss(p, name) for p in promised] for name in _streams(group)},
        "epsilon of an utterance": [_utterance(p) for p in promised],
        "corpus": [None if c is None else _corpus_text(c) for c in corpora],
        "data revision": [None if c is None else str(c["revision"])[:16] for c in corpora],
    }
    return [{"fact": name, "values": values} for name, values in facts.items()]


def _loss(promise: Mapping[str, Any] | None, name: str) -> str | None:
    if promise is None:
        return None
    return loss_text(promise["streams"].get(name))


def _utterance(promise: Mapping[str, Any] | None) -> str | None:
    if promise is None:
        return None
    loss = promise["utterance"]
    if conditional(loss):
        return f"none; {GIVEN_WORDS}: {given_text(loss)} ({loss['mechanism']}; {loss['rule']})"
    if concentrated(loss):
        return f"none; zCDP: {concentrated_text(loss)} ({loss['mechanism']}; {loss['rule']})"
    return f"{epsilon_text(loss['epsilon'])} nat per {loss['unit']} ({loss['mechanism']}; {loss['rule']})"


def _corpus_text(corpus: Mapping[str, Any]) -> str:
    return f"{corpus['name']}, {'synthetic' if corpus['synthetic'] else 'real'} speech"


def _warnings(
    runs: Sequence[RunResults],
    group: Sequence[Summary | None],
    attacks: Sequence[Sequence[Attack | None]],
) -> list[str]:
    present = [(run, s) for run, s in zip(runs, group, strict=True) if s is not None]
    found = []
    revisions = [(s.get("corpus") or {}).get("revision") for _, s in present]
    if len(set(revisions) - {None}) > 1:
        found.append("different data revisions: the numbers are not of the same speech")
    if None in revisions:
        found.append("the data revision is not stated: whether it is the same speech is unknown")
    for chosen in attacks:
        who = list(dict.fromkeys(f"{conditions(a)}; trained on {a['training']}" for a in chosen if a))
        if len(who) > 1:
            found.append(f"different attackers: {' / '.join(who)}")
        if len([a for a in chosen if a]) < len(present):
            found.append(f"not every run was attacked by: {who[0]}")
    for run, chosen in zip(runs, zip(*attacks, strict=True), strict=True):
        found += [f"{run.label}: {w['text']}" for attack in chosen if attack for w in attack["warnings"]]
    absent = [run.label for run, s in zip(runs, group, strict=True) if s is None]
    if absent:
        found.append(f"system {present[0][1]['system']} is not in: {', '.join(absent)}")
    return found


def _attack_rows(
    runs: Sequence[RunResults], group: Sequence[Summary | None], attacks: Sequence[Attack | None]
) -> list[dict[str, Any]]:
    present = [attack for attack in attacks if attack]
    needed = min(2, len(present))  # what only one of several measured compares with nothing
    names = [
        name
        for name in METRICS
        if any(_has_value(a, name) for a in present) and sum(name in a["metrics"] for a in present) >= needed
    ]
    pairing = _pairing(runs, group, attacks)
    who = " / ".join(dict.fromkeys(conditions(attack) for attack in attacks if attack))
    rows = []
    for name in names:
        entries = [None if a is None else a["metrics"].get(name) for a in attacks]
        differences = [
            compare_entries(name, entries[0], entry, bounds.get(name) if isinstance(bounds, dict) else None)
            for entry, bounds in zip(entries[1:], pairing, strict=True)
        ]
        rows.append(_row(name, METRICS[name].unit, who, entries, differences))
        for difference, bounds in zip(rows[-1]["differences"], pairing, strict=True):
            if difference["method"] == "unpaired" and isinstance(bounds, str):
                difference["unpaired_because"] = bounds
    return rows


def _has_value(attack: Attack, name: str) -> bool:
    """Return whether a metric has a value, or a reason specific to this run."""
    entry = attack["metrics"].get(name)
    return bool(entry) and (entry["value"] is not None or str(entry["note"]).startswith("unbounded"))


def _pairing(
    runs: Sequence[RunResults], group: Sequence[Summary | None], attacks: Sequence[Attack | None]
) -> list[dict[str, tuple[float, float]] | str]:
    """Return paired intervals of each later run against the first, or why there are none."""
    found: list[dict[str, tuple[float, float]] | str] = []
    first = _try_scored(runs[0], group[0], attacks[0])
    for run, summary, attack in zip(runs[1:], group[1:], attacks[1:], strict=True):
        second = _try_scored(run, summary, attack)
        if isinstance(first, str) or isinstance(second, str):
            found.append(first if isinstance(first, str) else str(second))
            continue
        replicates = int((group[0] or {}).get("replicates") or 1000)
        try:
            found.append(paired_intervals(first, second, replicates))
        except NotPairedError as error:
            found.append(str(error))
    return found


def _try_scored(run: RunResults, summary: Summary | None, attack: Attack | None) -> Scored | str:
    """Return the scores behind a stored result, or why they cannot be used."""
    if summary is None or attack is None or run.scores is None:
        return "the scores of both are needed, and they are private: not in MLflow"
    folder = run.scores / summary["system"]
    if not folder.is_dir():
        return f"no scores of system {summary['system']} beside the results"
    require_done(folder, "scores")
    try:
        scored = read_scored(folder / attack["attacker"] / attack["scenario"])
    except NotPairedError as error:
        return str(error)
    for name, value in scored.values().items():
        stored = attack["metrics"][name]["value"]
        if stored is None or abs(stored - value) > 1e-6 * max(1.0, abs(value)):
            return "the scores beside the results are of another run"
    return scored


def _epsilon_rows(group: Sequence[Summary | None]) -> list[dict[str, Any]]:
    rows = []
    for name in (*_streams(group), "utterance", "delta_utterance", "given_words"):
        values = [_epsilon(s, name) for s in group]
        if all(value is None for value in values):
            continue
        differences = [_exact(values[0], value).to_json() for value in values[1:]]
        entries = [None if v is None else {"value": v, "ci95": None, "null95": None} for v in values]
        rows.append(
            {"metric": f"epsilon_{name}", "unit": _unit(group, name), "attack": "", "values": entries,
             "differences": differences}
        )  # fmt: skip
    return rows


def _streams(group: Sequence[Summary | None]) -> list[str]:
    """Return pitch and content, and what else any of the systems releases."""
    found = {name for s in group if s is not None and s.get("promise") for name in s["promise"]["streams"]}
    return [*_STREAMS, *sorted(found - {*_STREAMS, "target"})]


def _unit(group: Sequence[Summary | None], name: str) -> str:
    if name != "delta_utterance":
        return "nat"
    deltas = {s["promise"]["utterance"].get("delta") for s in group if s is not None and s.get("promise")}
    return f"nat at δ = {', '.join(f'{delta:g}' for delta in sorted(deltas - {None}))}"


def _epsilon(summary: Summary | None, name: str) -> float | str | None:
    promise = None if summary is None else summary.get("promise")
    if promise is None:
        return None
    if name == "delta_utterance":
        # A row of its own: an epsilon at a delta is never held against a pure one.
        found: float | None = promise["utterance"].get("epsilon_delta")
        return found
    if name == "given_words":
        # A row of its own as well: it holds for fewer pairs of utterances.
        given: float | str | None = promise["utterance"].get("epsilon_given_words")
        return given
    loss = promise["utterance"] if name == "utterance" else promise["streams"].get(name)
    return None if loss is None or concentrated(loss) or conditional(loss) else loss["epsilon"]


def _exact(first: float | str | None, second: float | str | None) -> Difference:
    """Return the difference of two promises: exact, so noise has no part in it."""
    if first is None or second is None:
        return Difference(None, None, "", "not judged", note="not promised in both")
    if first == second:
        return Difference(None if first == "inf" else 0.0, None, "exact", "equal")
    if first == "inf" or second == "inf":
        verdict, meaning = ("lower", "better") if first == "inf" else ("higher", "worse")
        return Difference(None, None, "exact", verdict, meaning, "from or to ∞")
    value = float(second) - float(first)
    verdict, meaning = ("higher", "worse") if value > 0 else ("lower", "better")
    return Difference(value, None, "exact", verdict, meaning)


def _utility_rows(group: Sequence[Summary | None]) -> list[dict[str, Any]]:
    rows = []
    units = (("per", "per", "%"), ("wer", "wer", "%"), ("pitch", "pitch_correlation", "fraction"))
    for name, shown, unit in units:
        entries = [((s or {}).get("utility") or {}).get(name) for s in group]
        if any(entry is not None for entry in entries):
            differences = [compare_entries(name, entries[0], entry) for entry in entries[1:]]
            rows.append(_row(shown, unit, "", entries, differences))
            for difference in rows[-1]["differences"]:
                if difference["method"] == "unpaired":
                    difference["unpaired_because"] = _INTERVALS_ALONE
    return rows


def _row(
    name: str, unit: str, attack: str, entries: Sequence[Any], differences: Sequence[Difference]
) -> dict[str, Any]:
    shown = ("value", "ci95", "null95", "note")
    return {
        "metric": name,
        "unit": unit,
        "attack": attack,
        "values": [None if e is None else {key: e.get(key) for key in shown} for e in entries],
        "differences": [difference.to_json() for difference in differences],
    }
