"""``voxveil track``: publish finished results to MLflow, now or again, and find an experiment's runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.cli.actions import add_action, add_actions
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.config import Params

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = (
    "Publish finished results to MLflow (sending twice changes nothing), or find the runs of an experiment."
)

EPILOG = """examples:
  voxveil track sync                     # what the report stage would publish, e.g. after a server was away
  voxveil track sync --exp rough-dusk    # the results of a DVC experiment, from the cache
  voxveil track find rough-dusk          # its MLflow runs: results, systems, trainings
  MLFLOW_TRACKING_URI=https://mlflow.example.org voxveil track sync

MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME say where to; the default is mlflow.db in the project.
"""

_METRICS, _REPORT = Path("outputs/evaluate"), Path("outputs/report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil track``."""
    actions = add_actions(parser)
    sync = add_action(actions, "sync", _sync, "publish outputs/evaluate and outputs/report")
    sync.add_argument("--exp", default="", metavar="NAME", help="DVC experiment to publish, from the cache")
    sync.add_argument(
        "--root", type=Path, default=None, metavar="DIR", help="checkout (default: found upwards)"
    )
    find = add_action(actions, "find", _find, "print the MLflow runs of a DVC experiment")
    find.add_argument("exp", metavar="EXP", help="DVC experiment (or run key)")


def _sync(args: argparse.Namespace) -> int:
    """Publish, and say where it went."""
    from voxveil.runtime.done import require_done
    from voxveil.runtime.project import project_root
    from voxveil.tracking.client import connect
    from voxveil.tracking.find_runs import run_url
    from voxveil.tracking.publish.send import publish
    from voxveil.tracking.store import resolve_store

    root = args.root or project_root()
    store = resolve_store()
    with _outputs(root, args.exp) as (folder, commit):
        require_done(folder / _REPORT, "report")
        run_id = publish(
            folder / _METRICS,
            folder / _REPORT,
            experiment=args.exp,
            commit=commit,
            store=store,
            training=_training(folder),
        )
    print(f"published to {store.shown}, experiment {store.experiment}: run {run_id}")
    address = run_url(store, connect(store).experiment_id, run_id)
    if address:
        print(address)
    return 0


def _find(args: argparse.Namespace) -> int:
    """Print the results runs of an experiment with their systems and trainings."""
    from voxveil.tracking.client import connect_to_read
    from voxveil.tracking.find_runs import experiment_runs, run_url
    from voxveil.tracking.mlflow_names import PREFIX
    from voxveil.tracking.publish.send import used_by
    from voxveil.tracking.store import resolve_store

    name, store = args.exp, resolve_store()
    tracker = connect_to_read(store, f"experiment {name}: not found")
    parents = experiment_runs(tracker, name)
    if not parents:
        raise InputError(
            f"experiment {name}: has no run in MLflow experiment {store.experiment!r} at {store.shown}"
            f" ('voxveil track sync --exp {name}' publishes it)"
        )
    for parent in parents:
        run_id = parent.info.run_id
        with tracker.burst():
            children = tracker.search(f"tags.`mlflow.parentRunId` = '{run_id}'", 200)
            trained = tracker.search(f"tags.`{PREFIX}{used_by(run_id)}` LIKE '%'", 200)
        everyone = {run.info.run_id: run for run in (parent, *children, *trained)}
        rows = [_row(run) for run in sorted(everyone.values(), key=_order)]
        for kind, title, found in rows:
            url = run_url(store, tracker.experiment_id, found)
            print(f"{kind:<9}{title:<28}{found}  {url}".rstrip())
        replaced = parent.data.tags.get(f"{PREFIX}superseded_by")
        if replaced:
            print(f"         superseded by {replaced}")
    if not run_url(store, "", ""):
        print(f"pages: mlflow ui --backend-store-uri {store.shown}")
    return 0


def _order(run: Any) -> tuple[int, str]:
    kind, title, _ = _row(run)
    return ("results", "system", "training", "other").index(kind), title


def _row(run: Any) -> tuple[str, str, str]:
    """Return what a run is, its name, its id."""
    tags: Mapping[str, str] = run.data.tags
    kinds = {"run": "results", "system": "system"}
    kind = kinds.get(tags.get("voxveil.role", ""), "training" if "voxveil.stage" in tags else "other")
    return kind, tags.get("mlflow.runName", ""), str(run.info.run_id)


def _training(folder: Path) -> dict[str, str]:
    """Return the fingerprints of the trainings behind the outputs in ``folder``."""
    from voxveil.stages.training_runs import training_fingerprints

    params = _params(folder)
    return {} if params is None else training_fingerprints(params, folder)


def _params(folder: Path) -> Params | None:
    """Return the parameters; without usable ones (another version's) results are published all the same."""
    from voxveil.config import load_params
    from voxveil.runtime.errors import ParamsError
    from voxveil.tracking.store import warn

    path = folder / "params.yaml"
    try:
        return load_params(path) if path.is_file() else None
    except ParamsError as error:
        warn(f"training runs are not linked: {error}")
        return None


@contextmanager
def _outputs(root: Path, experiment: str) -> Iterator[tuple[Path, str]]:
    """Yield the folder that holds the outputs and their commit: the checkout's, or an experiment's copy."""
    if not experiment:
        yield root, ""
        return
    import tempfile

    from voxveil.runtime.done import DONE
    from voxveil.runtime.dvc_experiments import fetch_outputs
    from voxveil.stages.training_runs import training_inputs

    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        folder = Path(scratch)
        wanted = (_METRICS.as_posix(), _REPORT.as_posix())
        commit = fetch_outputs(root, experiment, folder, wanted, ("params.yaml",))
        params = _params(folder)
        if params is not None:
            records = [f"{path}/{DONE}" for path in training_inputs(params)]
            fetch_outputs(root, experiment, folder, (), records)
        else:
            (folder / "params.yaml").unlink(missing_ok=True)
        yield folder, commit
