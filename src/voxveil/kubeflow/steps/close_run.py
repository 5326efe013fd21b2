"""Step ``close_run``: the exit handler, which closes MLflow runs and notifies people of a failure.

A pod that is killed leaves its training run "running" for ever, and a run that fails before its report
leaves nothing to find. So every run of MLflow that this pipeline run left open is closed, and the parent,
which the backend may have opened (``MLFLOW_RUN_ID``), gets the state of the pipeline run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.webhook import notify
from voxveil.runtime.errors import InputError
from voxveil.tracking.client import Tracker, TrackingError, common_tags, connect
from voxveil.tracking.mlflow_names import PREFIX, short
from voxveil.tracking.store import resolve_store, tracking_enabled, warn

__all__ = ["run"]

#: MLflow's word for each state a pipeline run may end in.
_STATUS = {"SUCCEEDED": "FINISHED", "CANCELED": "KILLED", "CANCELLED": "KILLED"}


def run(call: StepCall) -> StepResult:
    """Close open MLflow runs, and notify people of a failure."""
    state, message = _state(call.parameters.get("status"))
    run_id = os.environ.get("KFP_RUN_ID", "")
    if tracking_enabled() and run_id:
        try:
            _close(connect(resolve_store()), run_id, state, message)
        except TrackingError as error:
            warn(f"{error}; its runs were not closed")
    line = f"voxveil run {run_id or '(no id)'}: {state.lower()}{': ' + message if message else ''}"
    print(line)
    if state != "SUCCEEDED":
        notify(line, {"event": "run", "state": state, "message": message})
    return StepResult({}, {})


def _state(status: Any) -> tuple[str, str]:
    """Return state and error of the pipeline run from the launcher's message."""
    if not isinstance(status, Mapping) or not isinstance(status.get("state"), str):
        raise InputError(
            f"step close_run: parameter status must be a final status of Kubeflow, got {status!r}"
        )
    error = status.get("error")
    message = error.get("message", "") if isinstance(error, Mapping) else ""
    return status["state"], " ".join(str(message).split())


def _close(tracker: Tracker, run_id: str, state: str, message: str) -> None:
    status = _STATUS.get(state, "FAILED")
    with tracker.burst() as client:
        mine = tracker.find(kfp_run=run_id)
        parents = [run for run in mine if run.data.tags.get(f"{PREFIX}role") == "run"]
        parent = parents[0].info.run_id if parents else os.environ.get("MLFLOW_RUN_ID", "")
        for run in mine:
            if run.info.status == "RUNNING" and run.info.run_id != parent:
                # Its training is over one way or another; a finished one would have closed itself.
                client.set_terminated(run.info.run_id, "KILLED" if status == "KILLED" else "FAILED")
        if not parent:
            if status == "FINISHED":
                return
            tags = {**common_tags(), f"{PREFIX}role": "failed", f"{PREFIX}run_key": run_id}
            created = client.create_run(tracker.experiment_id, tags=tags, run_name=f"failed {run_id[:12]}")
            parent = created.info.run_id
        client.set_tag(parent, f"{PREFIX}kfp_run", run_id)
        client.set_tag(parent, f"{PREFIX}kfp_state", state)
        if message:
            client.set_tag(parent, f"{PREFIX}kfp_error", short(message))
        client.set_terminated(parent, status)
