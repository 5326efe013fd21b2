"""Publication of the result of one score file as one MLflow run, found again by its content."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from voxveil.metrics.catalogue import flat_metrics, undefined_metrics
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.atomic import dump_json
from voxveil.tracking.client import common_tags, connect
from voxveil.tracking.mlflow_names import PREFIX, finite, short
from voxveil.tracking.store import resolve_store

__all__ = ["publish_evaluation"]


def publish_evaluation(
    result: Mapping[str, Any], attacker: str, scenario: str, options: SuiteOptions, *, dataset: str = ""
) -> str:
    """Log a result as one run and return its id; the same result sent twice is the same run.

    Args:
        result: The JSON of :func:`voxveil.metrics.suite.evaluate_scores`.
        attacker: Attacker's name.
        scenario: What the attacker knows.
        options: How it was evaluated.
        dataset: Name of the set that was attacked, where there is one.

    Raises:
        TrackingError: The store is away or refuses.
    """
    settings = {
        "attacker": attacker,
        "scenario": scenario,
        "pav_rule": options.pav_rule,
        "replicates": str(options.replicates),
        "seed": str(options.seed),
    }
    if dataset:
        settings["dataset"] = dataset
    key = hashlib.sha256(dump_json([result, settings]).encode()).hexdigest()
    tracker = connect(resolve_store())
    from mlflow.entities import Metric, Param

    with tracker.burst() as client:
        known = tracker.find(evaluate_key=key)
        if known:
            return str(known[0].info.run_id)
        # File names may be private, so none is logged; the texts of notes and warnings hold no names.
        tags = {f"{PREFIX}undefined.{name}": short(text) for name, text in undefined_metrics(result).items()}
        tags |= {f"{PREFIX}warning.{w['code']}": short(w["text"]) for w in result["warnings"]}
        run = client.create_run(
            tracker.experiment_id,
            tags={**tags, **common_tags()},
            run_name=" ".join(word for word in ("evaluate", dataset, attacker, scenario) if word),
        )
        run_id = str(run.info.run_id)
        now = int(time.time() * 1000)
        values = finite(flat_metrics(result, attacker, scenario))
        client.log_batch(
            run_id,
            metrics=[Metric(name, value, now, 0) for name, value in values.items()],
            params=[Param(name, value) for name, value in settings.items()],
        )
        client.log_dict(run_id, result, "evaluate.json")
        # Last, so that an interrupted run is never found as complete.
        client.set_tag(run_id, f"{PREFIX}evaluate_key", key)
        client.set_terminated(run_id)
    return run_id
