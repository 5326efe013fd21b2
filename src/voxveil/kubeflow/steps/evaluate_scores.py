"""Step ``evaluate_scores``: evaluates external score files, as ``voxveil evaluate`` does.

The folder at ``location`` holds ``scores.txt`` and ``trials.txt`` (either may end in ``.gz``), and may hold
``rank.npz``, ``utt2spk`` and ``enrol.scp``; or ``scores.npz`` alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.store import check_reachable, fetch
from voxveil.metrics.catalogue import flat_metrics, format_result
from voxveil.metrics.evaluation import read_evaluation
from voxveil.metrics.score_files import Evaluation
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
from voxveil.runtime.atomic import whole_directory, write_bytes, write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError
from voxveil.tracking.client import TrackingError
from voxveil.tracking.publish.evaluation import publish_evaluation
from voxveil.tracking.store import tracking_enabled, warn

__all__ = ["run"]

_FLAT = "flat.metrics.json"


def run(call: StepCall) -> StepResult:
    """Fetch the files, evaluate, write, and log to MLflow."""
    attacker, scenario = call.text("attacker"), call.text("scenario")
    location = call.text("location")
    check_reachable(location)
    options = SuiteOptions(replicates=call.params.evaluate.replicates, seed=call.params.base.seed)
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        folder = Path(scratch) / "scores"
        fetch(location, folder)
        found = _read(folder, location)
    result = evaluate_scores(found.scores, found.ranks, options=options, rank_reason=found.rank_reason)
    print(format_result(result))
    with whole_directory(call.outputs["result"]) as out:
        write_json(out / "result.json", result)
        write_json(out / _FLAT, flat_metrics(result, attacker, scenario))
        done = finish(out, call.step, None, "result")
    write_bytes(call.outputs["flat"], (call.outputs["result"] / _FLAT).read_bytes())
    if tracking_enabled():
        try:
            print(f"MLflow run {publish_evaluation(result, attacker, scenario, options)}")
        except TrackingError as error:
            # The result is in the store; a server that is away loses the entry only.
            warn(f"{error}; the result was not logged")
    return StepResult({"result": done}, {})


def _read(folder: Path, location: str) -> Evaluation:
    def path(*names: str) -> Path | None:
        return next((folder / name for name in names if (folder / name).is_file()), None)

    scores = path("scores.npz", "scores.txt", "scores.txt.gz")
    if scores is None:
        raise InputError(f"{location}: holds neither scores.txt, scores.txt.gz nor scores.npz")
    try:
        return read_evaluation(
            scores,
            None if scores.suffix == ".npz" else path("trials.txt", "trials.txt.gz"),
            rank=path("rank.npz"),
            utt2spk=path("utt2spk"),
            enrolments=path("enrol.scp"),
        )
    except InputError as error:
        raise InputError(str(error).replace(str(folder), location)) from None
