"""``voxveil compare``: runs side by side, with differences and what is within noise."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from voxveil.runtime.errors import InputError

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Compare runs: one table, differences to the first with intervals, and what is within noise."

EPILOG = """A RUN is a folder of evaluate outputs (all systems or one), a checkout, results.json, the JSON of
'voxveil evaluate', a DVC experiment or Git revision, or an MLflow run (id, name, or DVC experiment).
Where the scores of both are at hand (folders, DVC's cache) and the trials are the same, intervals of
differences are paired; else they come from the two stored intervals, and the table says so.

examples:
  voxveil compare rough-dusk main                                # DVC experiment against a branch
  voxveil compare outputs/evaluate/anon outputs/evaluate/anon_dp --out comparison.md
  voxveil compare 0f3c... 9ab1... --tracking-uri https://mlflow.example.org --system anon_dp
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil compare``."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="at least two; the first is what others are held to"
    )
    parser.add_argument(
        "--system", action="append", default=[], metavar="NAME", help="only this one (repeatable)"
    )
    parser.add_argument(
        "--tracking-uri", default="", metavar="U", help="MLflow store (default: as for 'track')"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write it: .md or .json")


def run(args: argparse.Namespace) -> int:
    """Find the runs, compare, print, write."""
    import tempfile

    from voxveil.results.comparison.comparison import compare_runs
    from voxveil.results.comparison.render import comparison_markdown, comparison_text
    from voxveil.results.comparison.run_results import RunResults
    from voxveil.runtime.atomic import write_json, write_text
    from voxveil.runtime.project import project_root
    from voxveil.tracking.find_runs import compare_url, find_run
    from voxveil.tracking.store import resolve_store

    if args.out is not None and args.out.suffix not in (".md", ".json"):
        raise InputError(f"--out must end in .md or .json, got {args.out}")
    chosen = {"MLFLOW_TRACKING_URI": args.tracking_uri} if args.tracking_uri else {}
    store = resolve_store({**os.environ, **chosen})
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        found: Sequence[RunResults] = [
            find_run(text, store, project_root(), Path(scratch)) for text in args.runs
        ]
        comparison = compare_runs(found, args.system)
    print(comparison_text(comparison))
    address = compare_url(store, found)
    if address:
        print(f"\nin MLflow: {address}")
    if args.out is not None and args.out.suffix == ".md":
        write_text(args.out, comparison_markdown(comparison))
    elif args.out is not None:
        write_json(args.out, comparison)
    return 0
