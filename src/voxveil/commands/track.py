"""``voxveil track``: publish finished results to MLflow, now or again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Publish finished results to MLflow; sending twice changes nothing."

EPILOG = """examples:
  voxveil track sync                     # what the report stage would publish, e.g. after a server was away
  voxveil track sync --exp rough-dusk    # the results of a DVC experiment, from the cache
  MLFLOW_TRACKING_URI=https://mlflow.example.org voxveil track sync

MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME say where to; the default is mlflow.db in the project.
"""

_METRICS, _REPORT = Path("outputs/evaluate"), Path("outputs/report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil track``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    sync = actions.add_parser("sync", help="publish outputs/evaluate and outputs/report")
    sync.add_argument("--exp", default="", metavar="NAME", help="DVC experiment to publish, from the cache")
    sync.add_argument(
        "--root", type=Path, default=None, metavar="DIR", help="checkout (default: found upwards)"
    )


def run(args: argparse.Namespace) -> int:
    """Publish, and say where it went."""
    from voxveil.publish.send import publish
    from voxveil.storage.done import require_done
    from voxveil.storage.project import project_root
    from voxveil.tracking.store import resolve_store

    root = args.root or project_root()
    store = resolve_store()
    with _outputs(root, args.exp) as (folder, commit):
        require_done(folder / _REPORT, "report")
        run_id = publish(folder / _METRICS, folder / _REPORT, experiment=args.exp, commit=commit, store=store)
    print(f"published to {store.shown}, experiment {store.experiment}: run {run_id}")
    return 0


@contextmanager
def _outputs(root: Path, experiment: str) -> Iterator[tuple[Path, str]]:
    """Yield the folder that holds the outputs and their commit: the checkout's, or an experiment's copy."""
    if not experiment:
        yield root, ""
        return
    import tempfile

    from voxveil.experiments import fetch_outputs

    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        folders = (_METRICS.as_posix(), _REPORT.as_posix())
        yield Path(scratch), fetch_outputs(root, experiment, Path(scratch), folders)
