"""Links between training runs and results runs, in both directions.

A training that several experiments share (DVC restores its output) is linked to each: the tag
``voxveil.used_by.RUN`` on the training run holds the run key, the tag ``voxveil.training.STAGE`` on the
results run holds the training run's id. The first results run also becomes its parent in MLflow's pages,
unless it has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from voxveil.tracking.client import Tracker
from voxveil.tracking.mlflow_names import PREFIX, mlflow_name

__all__ = ["link_training", "used_by"]


def used_by(run_id: str) -> str:
    """Return the tag, without prefix, that a training run carries for each results run."""
    return f"used_by.{run_id}"


def link_training(tracker: Tracker, parent: str, key: str, fingerprints: Mapping[str, str]) -> int:
    """Link every training run that can be found and return their number; existing links stay.

    Args:
        tracker: Where.
        parent: The results run.
        key: Its run key.
        fingerprints: Fingerprint by training, e.g. ``train_pitch.dp``.
    """
    found = {}
    with tracker.burst() as client:
        for name, fingerprint in sorted(fingerprints.items()):
            runs = tracker.find(fingerprint=fingerprint)
            if runs:
                found[mlflow_name(f"{PREFIX}training.{name}")] = runs[0]
        parent_tags = client.get_run(parent).data.tags
        for tag, run in found.items():
            run_id = run.info.run_id
            if parent_tags.get(tag) != run_id:
                client.set_tag(parent, tag, run_id)
            if f"{PREFIX}{used_by(parent)}" not in run.data.tags:
                client.set_tag(run_id, f"{PREFIX}{used_by(parent)}", key)
            if "mlflow.parentRunId" not in run.data.tags:
                client.set_tag(run_id, "mlflow.parentRunId", parent)
    return len(found)
