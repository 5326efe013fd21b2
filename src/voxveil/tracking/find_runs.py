"""Lookup of a run by name: files, a DVC experiment, or a run of an MLflow store."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from voxveil.results.comparison.run_results import (
    EVALUATE,
    RunResults,
    external_summary,
    read_results,
    read_summaries,
)
from voxveil.runtime.atomic import read_json
from voxveil.runtime.dvc_experiments import fetch_outputs, knows
from voxveil.runtime.errors import InputError
from voxveil.tracking.client import Tracker, call_or_none, connect_to_read
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import Store

__all__ = ["compare_url", "experiment_runs", "find_run", "run_url"]

_SCORE = "outputs/score"
_ID = re.compile(r"[0-9a-f]{32}\Z")


def find_run(text: str, store: Store, root: Path, scratch: Path) -> RunResults:
    """Return the results that ``text`` names.

    Args:
        text: Folder or JSON file, DVC experiment or Git revision, MLflow run id or run name.
        store: Where MLflow runs are looked for.
        root: The checkout, for DVC experiments.
        scratch: Folder for what must be copied; must live as long as the result.

    Raises:
        InputError: Nothing has this name, or several have; results are not readable.
        TrackingError: The store is away.
    """
    path = Path(text)
    if path.exists():
        return read_results(text, path)
    if not _ID.match(text) and knows(root, text):
        target = scratch / f"dvc-{len(list(scratch.iterdir()))}"
        commit = fetch_outputs(root, text, target, (EVALUATE,), (_SCORE,))
        found = read_results(text, target / EVALUATE)
        return RunResults(text, f"DVC {text} ({commit[:12]})", found.systems, found.scores)
    tracker = connect_to_read(store, f"{text}: no such file or folder and no DVC experiment")
    return _from_mlflow(text, tracker, scratch)


def experiment_runs(tracker: Tracker, name: str) -> list[Any]:
    """Return the results runs of a DVC experiment or run key, those in force first, then newest first."""
    with tracker.burst():
        found = {run.info.run_id: run for run in tracker.find(exp=name, role="run")}
        found |= {run.info.run_id: run for run in tracker.find(run_key=name, role="run")}
    runs = sorted(found.values(), key=lambda run: run.info.start_time, reverse=True)
    return sorted(runs, key=_superseded)


def run_url(store: Store, experiment_id: str, run_id: str) -> str:
    """Return the address of a run in MLflow's pages, empty for a store that is no server."""
    if not store.is_server:
        return ""
    return f"{store.shown.rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}"


def compare_url(store: Store, runs: Sequence[RunResults]) -> str:
    """Return the address of MLflow's page that compares these runs; empty where one is not on a server."""
    if not store.is_server or not all(run.run_id for run in runs):
        return ""
    ids = json.dumps([run.run_id for run in runs], separators=(",", ":"))
    experiments = json.dumps(sorted({run.experiment_id for run in runs}), separators=(",", ":"))
    query = urlencode({"runs": ids, "experiments": experiments})
    return f"{store.shown.rstrip('/')}/#/compare-runs?{query}"


def _from_mlflow(text: str, tracker: Tracker, scratch: Path) -> RunResults:
    run = _run_of(text, tracker)
    tags, run_id = run.data.tags, str(run.info.run_id)
    name = run.data.tags.get("mlflow.runName", "")
    label = tags.get(f"{PREFIX}exp") or f"{name} {run_id[:8]}".strip()
    role = tags.get(f"{PREFIX}role")
    if role == "run":
        systems = read_summaries(_artifact(tracker, run_id, "report/results.json", scratch))
    elif role == "system":
        systems = read_summaries(_artifact(tracker, run_id, "evaluate/summary.json", scratch))
    elif f"{PREFIX}evaluate_key" in tags:
        content = read_json(_artifact(tracker, run_id, "evaluate.json", scratch))
        systems = (external_summary(content, name, run.data.params["attacker"], run.data.params["scenario"]),)
    else:
        raise InputError(f"run {text}: holds no results (a training run, or not made by voxveil)")
    origin = f"MLflow run {run_id} at {tracker.store.shown}"
    return RunResults(label, origin, systems, None, run_id, str(run.info.experiment_id))


def _run_of(text: str, tracker: Tracker) -> Any:
    if _ID.match(text):
        with tracker.burst() as client:
            run = call_or_none(client.get_run, text)
        if run is None:
            raise InputError(f"run {text}: does not exist at {tracker.store.shown}")
        if run.info.lifecycle_stage != "active":
            raise InputError(f"run {text}: is deleted; 'mlflow runs restore' restores it")
        return run
    found = experiment_runs(tracker, text) or _by_name(tracker, text)
    current = [run for run in found if not _superseded(run)] or found[:1]
    if not current:
        raise InputError(
            f"{text}: no such folder, DVC experiment, or run in MLflow experiment"
            f" {tracker.store.experiment!r} at {tracker.store.shown}"
        )
    if len(current) > 1:
        ids = ", ".join(run.info.run_id for run in current[:5])
        raise InputError(f"{text}: {len(current)} runs have this name; give one by its id: {ids}")
    return current[0]


def _by_name(tracker: Tracker, name: str) -> Sequence[Any]:
    if "'" in name:
        return []
    with tracker.burst():
        return tracker.search(f"attributes.run_name = '{name}'")


def _superseded(run: Any) -> bool:
    return f"{PREFIX}superseded_by" in run.data.tags


def _artifact(tracker: Tracker, run_id: str, name: str, scratch: Path) -> Path:
    target = scratch / run_id
    target.mkdir(exist_ok=True)
    with tracker.burst() as client:
        return Path(client.download_artifacts(run_id, name, str(target)))
