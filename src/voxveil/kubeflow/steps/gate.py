"""Step ``gate``: decides on promotion from this run's results, the reference and the champion.

A version of the registered model says in its tags where its evidence lies: the evaluate and the score
output of the run that made it. Scores are private and stay in the private store; the registry holds
their address and digest only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from voxveil.kubeflow.fan_in import fetch_one
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.webhook import notify
from voxveil.results.gate.decision import Decision, decide, gated_attacks
from voxveil.results.gate.evidence import Evidence, losses_or_reason, read_evidence
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.tracking.models.registering import find_alias
from voxveil.tracking.store import Store, resolve_store

__all__ = ["ALIASES", "run"]

#: Aliases of the registered model: the system in use, and what people pinned to hold it against.
ALIASES = ("champion", "reference")


def run(call: StepCall) -> StepResult:
    """Decide; a decision against the candidate is a result, not a failure."""
    name = call.text("registered_model")
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        decision = _decide(call, name, resolve_store(), Path(scratch))
    for finding in decision.findings:
        print(f"gate: {'passed' if finding.passed else 'FAILED'}: {finding.text}")
    print(f"gate: {decision.reason}")
    content = {
        **decision.to_json(),
        "system": call.key,
        "metrics": call.location("metrics"),
        "scores": call.location("scores"),
    }
    result = call.leave("decision", "decision.json", content, {"promoted": str(decision.promote).lower()})
    notify(
        f"voxveil {name}: {decision.reason}", {"event": "gate", "promoted": decision.promote, "model": name}
    )
    return result


def _decide(call: StepCall, name: str, store: Store, scratch: Path) -> Decision:
    rules = call.params.gate
    candidate = _read(call.inputs["metrics"], call.key)
    attacks = gated_attacks(candidate, rules)
    champion, _ = _registered(name, "champion", store, scratch)
    reference, scores = _registered(name, "reference", store, scratch)
    return decide(
        candidate,
        rules,
        reference=reference,
        champion=champion,
        losses=losses_or_reason(scores, call.inputs["scores"], attacks, rules.replicates),
        original=_read(call.inputs["original"], "original"),
    )


def _registered(name: str, alias: str, store: Store, scratch: Path) -> tuple[Evidence | None, Path | None]:
    """Return the measurements of an alias's version; None if no version has the alias.

    Raises:
        InputError: The version has no evidence, or it cannot be fetched: without it nothing may be promoted.
    """
    version = find_alias(name, alias, store)
    if version is None:
        return None, None
    label = f"{name}@{alias} (version {version.number})"
    folders = {}
    for what in ("metrics", "scores"):
        entry = version.tags.get(what)
        if not entry:
            raise InputError(f"{label}: its tag {what} is missing; was it registered by a retraining?")
        folders[what] = fetch_one(entry, scratch / alias / what, f"{what} of {label}")
    return _read(folders["metrics"], label), folders["scores"]


def _read(folder: Path, label: str) -> Evidence:
    return read_evidence(read_json(folder / "summary.json"), label)
