"""Step ``evaluate_attacks``: evaluates the attacks of ``attack_external`` with all metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voxveil.attack.external.attack_table import format_attacks, judge_set
from voxveil.kubeflow.steps.attack_external import CONDITIONS
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.metrics.catalogue import flat_metrics
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.atomic import read_json, whole_directory, write_bytes, write_json
from voxveil.runtime.done import finish
from voxveil.tracking.client import TrackingError
from voxveil.tracking.publish.evaluation import publish_evaluation
from voxveil.tracking.store import tracking_enabled, warn

__all__ = ["run"]

_FLAT = "flat.metrics.json"


def run(call: StepCall) -> StepResult:
    """Evaluate each attack on each set, write, print the tables, and log to MLflow."""
    scores = call.inputs["scores"]
    conditions = read_json(scores / CONDITIONS)
    options = SuiteOptions(replicates=call.params.evaluate.replicates, seed=call.params.base.seed)
    several = len(conditions["sets"]) > 1
    flat: dict[str, float] = {}
    judged: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    results = []
    with whole_directory(call.outputs["result"]) as out:
        for attacked in conditions["sets"]:
            name = str(attacked["set"])

            def keep(folder: Path, full: dict[str, Any], shown: dict[str, Any], name: str = name) -> None:
                write_json(out / "results" / name / f"{shown['attacker']}-{shown['scenario']}.json", full)
                numbers = flat_metrics(full, shown["attacker"], shown["scenario"])
                flat.update({f"{name}/{key}" if several else key: value for key, value in numbers.items()})
                judged.append((name, full, shown))

            folders = [
                scores / name / attack["attacker"] / attack["scenario"] for attack in attacked["attacks"]
            ]
            results.append(judge_set(name, folders, attacked["speakers"], options, keep))
            _draw(results[-1]["attacks"], out / "figures" / f"{name}.png")
        write_json(out / "result.json", {**conditions, "replicates": options.replicates, "sets": results})
        write_json(out / _FLAT, flat)
        done = finish(out, call.step, None, "result")
    write_bytes(call.outputs["flat"], (call.outputs["result"] / _FLAT).read_bytes())
    print(format_attacks(results, conditions["notes"]))
    if tracking_enabled():
        _publish(judged, options)
    return StepResult({"result": done}, {})


def _draw(attacks: list[dict[str, Any]], path: Path) -> None:
    from voxveil.metrics.plots import attack_matrix_figure, save_figure

    save_figure(attack_matrix_figure(attacks), path)


def _publish(judged: list[tuple[str, dict[str, Any], dict[str, Any]]], options: SuiteOptions) -> None:
    """Log every attack as its own run; with an unreachable server only these entries are lost."""
    try:
        for name, full, shown in judged:
            run = publish_evaluation(full, shown["attacker"], shown["scenario"], options, dataset=name)
            print(f"MLflow run {run}: {name}, {shown['attacker']}, {shown['scenario']}")
    except TrackingError as error:
        warn(f"{error}; the results were not all logged")
