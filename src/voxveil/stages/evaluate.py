"""Stage ``evaluate``: every privacy and utility metric of one system, with its conditions.

Writes, for each attacker and scenario that was scored, the full JSON contract of
``voxveil evaluate`` (``ATTACKER-SCENARIO.json``); the flat numbers for DVC and MLflow
(``SYSTEM.metrics.json``); what tables and the report show (``summary.json``); and the losses of
every utterance under ids that only a holder of the original ledger can resolve (``losses.json``).
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from voxveil.metrics.attacked import add_convergence_warnings, evaluate_attack, independent_disclosure
from voxveil.metrics.catalogue import flat_metrics
from voxveil.metrics.data import WORDS_ALONE
from voxveil.metrics.score_files import read_trials
from voxveil.metrics.suite import SuiteOptions
from voxveil.privacy.audit.information import passing_line
from voxveil.privacy.ledger import read_ledger
from voxveil.privacy.loss import Loss
from voxveil.privacy.record import Release
from voxveil.privacy.zcdp import DELTA, approximate
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.stages.context import StageContext

__all__ = ["losses_projection", "promise", "run"]


def run(context: StageContext) -> None:
    """Evaluate ``context.key``."""
    out = context.outputs["metrics"]
    options = SuiteOptions(replicates=context.params.evaluate.replicates, seed=context.params.base.seed)
    release = read_ledger(context.inputs["released"] / "ledger.json")
    if release.system != context.key:
        raise InputError(
            f"{context.inputs['released']}: holds speech of system {release.system!r},"
            f" must be of {context.key!r}"
        )
    attacks: list[dict[str, Any]] = []
    flat: dict[str, float] = {}
    tested: set[str] = set()
    words_alone = None
    for folder in _attacks(context.inputs["scores"]):
        full, attack = evaluate_attack(folder, options)
        write_json(out / f"{attack['attacker']}-{attack['scenario']}.json", full)
        flat.update(flat_metrics(full, attack["attacker"], attack["scenario"]))
        if attack["attacker"] == WORDS_ALONE:
            words_alone = attack
            continue
        attacks.append(attack)
        tested.update(read_trials(folder / "trials.txt").utterances)
    add_convergence_warnings(attacks)
    promised = promise(release, tested)
    corpus = _corpus(context.inputs["released"] / "corpus.json")
    utility = _utility(context.inputs["transcripts"] / "transcripts.json", public=corpus["public"])
    flat.update(_numbers(promised, utility))
    write_json(out / f"{context.key}.metrics.json", flat)
    write_json(out / "losses.json", losses_projection(release, public=corpus["public"]))
    write_json(
        out / "summary.json",
        {
            "format": 1,
            "system": context.key,
            "kind": context.system.kind,
            "composition": {
                "pitch": context.system.pitch,
                "content": context.system.content,
                "pitch_conversion": context.system.pitch_conversion,
            },
            "scale": context.params.base.scale,
            "corpus": corpus,
            "corpus_synthetic": corpus["synthetic"],
            "promise": promised,
            "attacks": attacks,
            "words_alone": words_alone,
            "independent": independent_disclosure(attacks),
            "utility": utility,
            "replicates": options.replicates,
        },
    )


def promise(release: Release, tested: Iterable[str]) -> dict[str, Any]:
    """Return what the release promises for the tested utterances.

    Args:
        release: The ledger.
        tested: Utterance ids of all trials; the utterance epsilon is the maximum over them.

    Returns:
        ``streams`` (epsilon, unit, sensitivity as [smallest, largest], mechanism, version, note by
        stream), ``utterance`` (largest epsilon, number of utterances, vectors of the longest) and
        ``passing`` (what the claim lets through of the longest).
        An infinite epsilon is the text ``"inf"``. Under zCDP (Gaussian noise) it is infinite, the stream
        has its ``rho``, and the utterance ``measure``, ``rho``, ``delta`` and the ``epsilon_delta`` of them.

    Raises:
        InputError: A tested utterance is not in the ledger.
    """
    entries = {entry.input: entry for entry in release.entries}
    chosen = sorted(set(tested))
    missing = [item for item in chosen if item not in entries]
    if missing:
        raise InputError(
            f"utterance {missing[0]}: tested, but not in the ledger of system {release.system}"
            f" ({len(missing)} missing)"
        )
    streams: dict[str, Any] = {}
    for name in sorted({name for item in chosen for name in entries[item].losses}):
        losses = [entries[item].losses[name] for item in chosen]
        worst = max(losses, key=lambda loss: loss.size)
        sizes = [loss.sensitivity for loss in losses if loss.sensitivity is not None]
        streams[name] = {
            **worst.to_json(),
            "sensitivity": [min(sizes), max(sizes)] if sizes else None,
        }
    largest = max((entries[item].utterance for item in chosen), key=lambda loss: loss.size)
    longest = max((entries[item] for item in chosen), key=lambda entry: entry.vectors)
    return {
        "streams": streams,
        "utterance": {
            "epsilon": largest.to_json()["epsilon"],
            "unit": largest.unit,
            "mechanism": largest.mechanism,
            "rule": "maximum over tested utterances",
            "utterances": len(chosen),
            "vectors": longest.vectors,
            **_concentrated(largest),
        },
        "passing": passing_line(longest.losses, longest.vectors),
        "release": release.id,
        "purpose": release.purpose,
    }


def _concentrated(loss: Loss) -> dict[str, Any]:
    if loss.rho is None:
        return {}
    found = {"measure": loss.measure, "rho": loss.rho, "delta": DELTA}
    return {**found, "epsilon_delta": approximate(loss.rho)}


def losses_projection(release: Release, *, public: bool) -> dict[str, Any]:
    """Return the losses of every utterance without its name or digest.

    Ids are HMAC-SHA-256 keyed by the ledger itself, so that whoever holds the ledger can resolve
    them and nobody else can test a guess; those of a public corpus stay as they are.

    Args:
        release: The ledger.
        public: The corpus is declared public.
    """
    secret = hashlib.sha256(
        b"voxveil utterance ids\0" + "".join(f"{e.input} {e.sha256}\n" for e in release.entries).encode()
    ).digest()

    def shown(item: str) -> str:
        return item if public else hmac.new(secret, item.encode(), hashlib.sha256).hexdigest()[:24]

    rows = [
        {
            "utterance": shown(entry.input),
            "vectors": entry.vectors,
            "losses": {name: loss.to_json() for name, loss in entry.losses.items()},
            "total": entry.utterance.to_json(),
        }
        for entry in release.entries
    ]
    return {
        "format": 1,
        "release": release.id,
        "purpose": release.purpose,
        "system": release.system,
        "ids": "as in the corpus" if public else "keyed hashes",
        "entries": sorted(rows, key=lambda row: str(row["utterance"])),
    }


def _attacks(scores: Path) -> list[Path]:
    folders = sorted(path.parent for path in scores.glob("*/*/scores.txt"))
    if all(folder.parent.name == WORDS_ALONE for folder in folders):
        raise IncompleteInputError(f"{scores}: no ATTACKER/SCENARIO/scores.txt; run the score stage again")
    return folders


def _utility(path: Path, *, public: bool) -> dict[str, Any]:
    """Return phone and word errors and pitch correlation, without a transcript and without private names."""
    content = read_json(path)
    words = content["wer"]
    if words is not None and not public:
        names = {name: f"subset {number}" for number, name in enumerate(sorted(words["subsets"]), 1)}
        for rates in (words, *words.get("others", [])):
            rates["subsets"] = {names[name]: rate for name, rate in rates["subsets"].items()}
            rates["judged"]["subsets"] = [names[name] for name in rates["judged"]["subsets"]]
    outliers = content.get("outliers", {})
    return {
        "per": dict(content["per"]),
        "wer": words,
        "pitch": content.get("pitch"),
        "naturalness": content.get("naturalness", {}),
        # Names of utterances stay with the transcripts where the corpus is private.
        "outliers": {name: items if public else len(items) for name, items in outliers.items()},
    }


def _corpus(path: Path) -> dict[str, Any]:
    """Return the facts of a corpus that may be shown to anybody: counts, and no name of anyone."""
    content = dict(read_json(path))
    for name in ("synthetic", "public"):
        if not isinstance(content.get(name), bool):
            raise InputError(f"{path}: {name} must be true or false, got {content.get(name)!r}")
    for name in ("skipped", "speakers_without_voiced_frames"):
        # A list would carry names into everything that is published.
        if not isinstance(content.get(name), int):
            raise InputError(f"{path}: {name} must be a count, got a {type(content.get(name)).__name__}")
    shown = {name: content[name] for name in ("synthetic", "public", "revision", "splits", "overlaps")}
    return {
        **shown,
        "dataset": content.get("dataset"),
        "name": content["name"] if content["public"] else "private corpus",
        "skipped": content["skipped"],
        "speakers_without_voiced_frames": content["speakers_without_voiced_frames"],
        "flags": dict(content.get("flags", {})),
    }


def _numbers(promised: Mapping[str, Any], utility: Mapping[str, Any]) -> dict[str, float]:
    """Return epsilons and utility by MLflow name; an infinite or undefined one is absent."""
    values = {f"privacy/epsilon_{name}": loss["epsilon"] for name, loss in promised["streams"].items()}
    values["privacy/epsilon_utterance"] = promised["utterance"]["epsilon"]
    values |= {f"privacy/rho_{name}": loss.get("rho") for name, loss in promised["streams"].items()}
    values["privacy/rho_utterance"] = promised["utterance"].get("rho")
    values["privacy/epsilon_delta_utterance"] = promised["utterance"].get("epsilon_delta")
    values["utility/per"] = utility["per"]["value"]
    if utility["wer"]:
        values["utility/wer"] = utility["wer"]["value"]
        values["utility/wer_judged"] = utility["wer"]["judged"]["value"]
        values["utility/wer_permuted"] = utility["wer"]["judged"]["permuted"]
        for other in utility["wer"].get("others", []):
            values[f"utility/wer/{other['kind']}"] = other["value"]
            values[f"utility/wer_judged/{other['kind']}"] = other["judged"]["value"]
    for judge, rate in utility["naturalness"].items():
        values[f"utility/naturalness/{judge}"] = rate["value"]
    if utility["pitch"]:
        values["utility/pitch_correlation"] = utility["pitch"]["value"]
    return {
        name: float(value)
        for name, value in values.items()
        if value is not None and value != "inf" and math.isfinite(float(value))
    }
