"""Locations of a pipeline run's outputs, stored as MLflow tags and read by ``pipeline fetch``.

The report is the one task that is told of every system, and evaluate, score and report are never taken from
the cache, so each run of the pipeline leaves its own. Each location is a text ``SYSTEM URI DIGEST`` in a tag:
``voxveil.evaluated`` and ``voxveil.scored`` of a system's run, ``voxveil.reported`` of their parent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voxveil.kubeflow.fan_in import location, read_locations
from voxveil.runtime.errors import InputError, VoxveilError
from voxveil.tracking.client import Tracker, connect
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import resolve_store, tracking_enabled, warn

__all__ = ["REPORT", "Locations", "find_locations", "leave_locations", "report_locations"]

#: Stands in the place of the system in the location of the report.
REPORT = "report"

_EVALUATED, _SCORED, _REPORTED = (f"{PREFIX}{name}" for name in ("evaluated", "scored", "reported"))


@dataclass(frozen=True)
class Locations:
    """``SYSTEM URI DIGEST`` texts of a run.

    Attributes:
        evaluate: Of evaluate's metrics, by system.
        score: Of the scores, by system; private, like what lies there.
        report: Of the report, ``report`` in the place of the system; empty before it is written.
    """

    evaluate: Mapping[str, str]
    score: Mapping[str, str]
    report: str = ""


def report_locations(parameters: Mapping[str, Any]) -> Locations:
    """Return the locations in the parameters of the report task.

    Raises:
        InputError: ``metrics`` or ``scores`` is no list of ``SYSTEM URI DIGEST`` texts.
    """
    evaluate, score = (
        {fields[0]: location(*fields) for fields in read_locations(parameters.get(name), name)}
        for name in ("metrics", "scores")
    )
    return Locations(evaluate, score)


def leave_locations(locations: Locations, uri: str, digest: str) -> None:
    """Store the locations of this run's outputs in MLflow; an unreachable server gives a warning.

    Args:
        locations: What the report task was told.
        uri: Where the report itself lies.
        digest: Its digest.
    """
    run_id = os.environ.get("KFP_RUN_ID", "")
    if not run_id or not tracking_enabled():
        return
    try:
        tracker = connect(resolve_store())
        found = _runs(tracker, run_id)
        if found is None:
            return  # Nothing was published, and a warning said why.
        parent, systems = found
        wanted = {run.info.run_id: (run, _of_system(locations, system)) for system, run in systems.items()}
        wanted[parent.info.run_id] = (parent, {_REPORTED: location(REPORT, uri, digest)})
        with tracker.burst() as client:
            for tagged_id, (run, tags) in wanted.items():
                for name, text in tags.items():
                    if run.data.tags.get(name) != text:
                        client.set_tag(tagged_id, name, text)
    except VoxveilError as error:
        warn(f"'voxveil pipeline fetch' will not find this run's outputs: {error}")


def find_locations(tracker: Tracker, run_id: str) -> Locations:
    """Return the locations of a pipeline run's outputs.

    Args:
        tracker: The MLflow experiment its report published to.
        run_id: Kubeflow's id of the run.

    Raises:
        InputError: MLflow has no results of this run, or does not know where they lie.
        TrackingError: MLflow is away or refuses.
    """
    found = _runs(tracker, run_id)
    where = f"MLflow at {tracker.store.shown}, experiment {tracker.store.experiment!r}"
    if found is None:
        raise InputError(
            f"{where}: has no results of Kubeflow run {run_id}; is MLFLOW_TRACKING_URI the server that its"
            " report published to?"
        )
    parent, systems = found
    evaluate = {system: run.data.tags.get(_EVALUATED, "") for system, run in systems.items()}
    score = {system: run.data.tags.get(_SCORED, "") for system, run in systems.items()}
    report = parent.data.tags.get(_REPORTED, "")
    if not evaluate or not report or not all((*evaluate.values(), *score.values())):
        raise InputError(
            f"{where}: does not say where the outputs of Kubeflow run {run_id} lie; it was made by an earlier"
            " version, or its report was cut off"
        )
    return Locations(evaluate, score, report)


def _of_system(locations: Locations, system: str) -> dict[str, str]:
    found = {_EVALUATED: locations.evaluate.get(system, ""), _SCORED: locations.score.get(system, "")}
    return {name: text for name, text in found.items() if text}


def _runs(tracker: Tracker, run_id: str) -> tuple[Any, dict[str, Any]] | None:
    """Return the parent of a pipeline run's results, and the run of each system; None without a parent."""
    with tracker.burst():
        parents = [
            run
            for run in tracker.find(kfp_run=run_id, role="run")
            if f"{PREFIX}superseded_by" not in run.data.tags
        ]
        if not parents:
            return None
        results = parents[0].data.tags.get(f"{PREFIX}results", "")
        systems = tracker.find(kfp_run=run_id, role="system", results=results)
    return parents[0], {str(run.data.tags[f"{PREFIX}system"]): run for run in systems}
