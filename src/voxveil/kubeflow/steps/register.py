"""Step ``register``: registers every candidate as a model version and moves the alias on promotion.

A kept candidate is registered as well, without an alias and with the reason in its tags, so that people
see what was tried. The tags that say where its evidence lies go first, the alias last: a champion that
cannot be held against is never there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.gate import ALIASES
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.s3 import S3Uri
from voxveil.tracking.client import connect
from voxveil.tracking.mlflow_names import PREFIX, short
from voxveil.tracking.models.registering import find_alias, move_alias, register_model, tag_version
from voxveil.tracking.models.storing import upload
from voxveil.tracking.store import Store, resolve_store

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Upload, register, tag, and move the alias where the gate promoted."""
    decision = _decision(call.inputs["decision"], call.key)
    name, store = call.text("registered_model"), resolve_store()
    address = upload(call.inputs["model"], S3Uri.parse(call.text("model_store")))
    version = register_model(call.inputs["model"], name, address, store)
    tags = {
        "gate": "promoted" if decision["promote"] else "kept",
        "gate_reason": short(decision["reason"]),
        "metrics": decision["metrics"],
        "scores": decision["scores"],
        "dvc_repository": call.text("repository"),
        "dvc_revision": call.text("commit"),
        "run_key": os.environ.get("KFP_RUN_ID", ""),
    }
    tag_version(name, version, tags, store)
    _tag_run(tags, store)
    moved = _move(name, version, store) if decision["promote"] else ()
    what = f"now {' and '.join(moved)}" if moved else "no alias moved"
    print(f"register: {name} version {version}, {what}; {decision['reason']}")
    content = {
        "format": 1,
        "model": name,
        "version": version,
        "address": str(address),
        "aliases": list(moved),
        "reason": decision["reason"],
    }
    return call.leave("registration", "registration.json", content, {"version": version})


def _decision(folder: Path, system: str) -> dict[str, Any]:
    path = folder / "decision.json"
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != 1 or content.get("system") != system:
        raise InputError(f"{path}: not the gate's decision on system {system}")
    if not isinstance(content.get("promote"), bool):
        raise InputError(f"{path}: promote must be true or false, got {content.get('promote')!r}")
    return content


def _tag_run(tags: Mapping[str, str], store: Store) -> None:
    """Tag the pipeline run's MLflow run with its data and the gate's decision."""
    run_key = tags["run_key"]
    if not run_key:
        return
    shown = ("gate", "gate_reason", "dvc_repository", "dvc_revision")
    tracker = connect(store)
    with tracker.burst() as client:
        for run in tracker.find(role="run", kfp_run=run_key):
            for name in shown:
                client.set_tag(run.info.run_id, f"{PREFIX}{name}", tags[name])


def _move(name: str, version: str, store: Store) -> tuple[str, ...]:
    """Move the alias champion; the first champion is the reference too, until people pin another."""
    champion, reference = ALIASES
    moved: tuple[str, ...] = (champion,)
    if find_alias(name, reference, store) is None:
        move_alias(name, reference, version, store)
        moved = (champion, reference)
    move_alias(name, champion, version, store)
    return moved
