"""Publication of a finished run to MLflow: one parent run, one child per system.

Runs are found again by their tags, so that sending twice changes nothing, and a run that was
sent in part is completed. Results that changed under the same run key (an experiment run again)
become new runs; the old ones are marked, never rewritten.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.results.report.results import results_digest
from voxveil.runtime.atomic import read_json
from voxveil.tracking.client import Tracker, common_tags, connect
from voxveil.tracking.mlflow_names import PREFIX, mlflow_name, short
from voxveil.tracking.publish.describe import link_line
from voxveil.tracking.publish.plan import Plan, parent_plan
from voxveil.tracking.store import Store, resolve_store

__all__ = ["publish", "run_key", "used_by"]

_ATTEMPTS = 5


def run_key(results: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the key of a run: the Kubeflow run id, the DVC experiment, or a digest of its results.

    Args:
        results: Digest of the evaluate outputs.
        environ: Environment variables; the process's unless given.
    """
    env = os.environ if environ is None else environ
    return env.get("KFP_RUN_ID") or env.get("DVC_EXP_NAME") or results


def publish(
    metrics: Path,
    report: Path,
    *,
    experiment: str = "",
    commit: str = "",
    store: Store | None = None,
    training: Mapping[str, str] | None = None,
) -> str:
    """Publish finished outputs and return the id of the parent run.

    Args:
        metrics: Folder of evaluate outputs, one per system.
        report: Output of the report stage.
        experiment: DVC experiment whose outputs these are, if not the one running now.
        commit: Its commit; the checked-out one unless given.
        store: Where to; the environment's unless given.
        training: Fingerprint of each training behind these outputs; its run is linked where it is there.

    Raises:
        InputError: An output is missing or unfinished.
        MissingExtraError: MLflow is not installed.
        TrackingError: The store is away or refuses; sending again completes what is there.
    """
    systems: list[str] = [
        summary["system"] for summary in read_json(Path(report) / "results.json")["systems"]
    ]
    results = results_digest(metrics, systems)
    tracker = connect(store or resolve_store())
    key = experiment or _known_key(tracker, results)
    plan = parent_plan(Path(metrics), Path(report), key, results)
    tags = common_tags()
    if experiment:
        tags[f"{PREFIX}exp"] = experiment
    if commit:
        tags["mlflow.source.git.commit"] = commit
    parent, complete = _adopt(tracker, plan, tags) or _open(tracker, plan, tags)
    if not complete:
        _complete(tracker, plan, parent, tags)
    link_training(tracker, parent, key, training or {})
    return parent


def _complete(tracker: Tracker, plan: Plan, parent: str, tags: Mapping[str, str]) -> None:
    """Send the children, then the content of the parent."""
    _supersede(tracker, plan, parent)
    for child in plan.children:
        run_id, sent = _open(tracker, child, {**tags, "mlflow.parentRunId": parent})
        if not sent:
            _fill(tracker, child, run_id)
    _fill(tracker, plan, parent)


def _known_key(tracker: Tracker, results: str) -> str:
    """Return the run key; results that an experiment has published already keep the experiment's."""
    key = run_key(results)
    if key == results:
        with tracker.burst():
            found = tracker.find(role="run", results=results)
        if found:
            return str(found[0].data.tags[f"{PREFIX}run_key"])
    return key


def _adopt(tracker: Tracker, plan: Plan, tags: Mapping[str, str]) -> tuple[str, bool] | None:
    """Take the run that Kubeflow's backend opened for this pipeline run as the parent, if there is one.

    Elsewhere a run named by ``MLFLOW_RUN_ID`` is somebody's own, and becomes a parent tag only. So does one
    of another experiment: nothing of ours would be found beside it.
    """
    run_id = os.environ.get("MLFLOW_RUN_ID", "")
    if not run_id or not os.environ.get("KFP_RUN_ID"):
        return None
    with tracker.burst() as client:
        run = client.get_run(run_id)
        if str(run.info.experiment_id) != tracker.experiment_id:
            return None
        wanted = {f"{PREFIX}{name}": value for name, value in plan.identity.items()}
        wanted |= {name: value for name, value in tags.items() if name != "mlflow.parentRunId"}
        for name, value in {**wanted, "mlflow.runName": plan.name}.items():
            if run.data.tags.get(name) != value:
                client.set_tag(run_id, name, value)
    return run_id, run.data.tags.get(f"{PREFIX}sent") == plan.digest


def _open(tracker: Tracker, plan: Plan, tags: Mapping[str, str]) -> tuple[str, bool]:
    """Find or create the plan's run; return its id and whether it is already complete."""
    with tracker.burst() as client:
        found = tracker.find(**plan.identity)
        if found:
            return str(found[0].info.run_id), found[0].data.tags.get(f"{PREFIX}sent") == plan.digest
        identity = {f"{PREFIX}{name}": value for name, value in plan.identity.items()}
        run = client.create_run(tracker.experiment_id, tags={**identity, **tags}, run_name=plan.name)
        return str(run.info.run_id), False


def _fill(tracker: Tracker, plan: Plan, run_id: str) -> None:
    """Send the missing content of the run; the tag ``voxveil.sent`` goes last."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    with tracker.burst() as client:
        sent = client.get_run(run_id).data
        now = int(time.time() * 1000)
        metrics = [Metric(n, v, now, 0) for n, v in sorted(plan.metrics.items()) if sent.metrics.get(n) != v]
        params = [Param(n, v) for n, v in sorted(plan.params.items()) if n not in sent.params]
        wanted = {**plan.tags, **_note(plan, tracker.experiment_id, run_id)}
        tags = [RunTag(n, v) for n, v in sorted(wanted.items()) if sent.tags.get(n) != v]
        client.log_batch(run_id, metrics=metrics, params=params[:100], tags=tags[:100])
        for tag in tags[100:]:
            client.set_tag(run_id, tag.key, tag.value)
        name, digest, found = plan.dataset
        commit = sent.tags.get("mlflow.source.git.commit")
        source = json.dumps({**found, **({"git_commit": commit} if commit else {})}, sort_keys=True)
        data = Dataset(name=name, digest=digest, source_type="dvc", source=source)
        _log_input(client, run_id, DatasetInput(data, [InputTag("mlflow.data.context", "evaluation")]))
    for path, folder in plan.artifacts:
        with tracker.burst() as client:
            client.log_artifact(run_id, str(path), folder)
    with tracker.burst() as client:
        client.set_tag(run_id, f"{PREFIX}sent", plan.digest)
        client.set_terminated(run_id, "FINISHED")


def _log_input(client: Any, run_id: str, data: Any) -> None:
    """Log the dataset; what another run registered in the same moment is found at the next attempt.

    MLflow looks a dataset up and then adds it, so that of two runs that bring a new one at once the slower
    is refused by the database's unique key.
    """
    from mlflow.exceptions import MlflowException

    for attempt in range(_ATTEMPTS):
        try:
            client.log_inputs(run_id, [data])
        except MlflowException as error:
            taken = any(word in str(error).lower() for word in ("duplicate", "unique constraint"))
            if not taken or attempt + 1 == _ATTEMPTS:
                raise
            time.sleep(0.1 * (attempt + 1))
        else:
            return


def _note(plan: Plan, experiment: str, run_id: str) -> dict[str, str]:
    """Return the description with links to what the run holds; they need its id."""
    name = "mlflow.note.content"
    links = link_line(experiment, run_id, [f"{folder}/{path.name}" for path, folder in plan.artifacts])
    return {name: short(f"{links}\n\n{plan.tags[name]}")} if links and name in plan.tags else {}


def _supersede(tracker: Tracker, plan: Plan, run_id: str) -> None:
    """Mark earlier runs of the same key whose results are other ones."""
    with tracker.burst() as client:
        runs: list[Any] = tracker.find(run_key=plan.identity["run_key"], role="run")
        for run in runs:
            if run.info.run_id != run_id:
                client.set_tag(run.info.run_id, f"{PREFIX}superseded_by", run_id)


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
