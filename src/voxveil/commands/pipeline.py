"""``voxveil pipeline``: compile the Kubeflow pipeline, or run it here without Docker."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxveil.errors import InputError

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Compile the Kubeflow pipeline of this checkout, or run it on this machine."

EPILOG = """examples:
  voxveil pipeline compile --params params.yaml --images images.lock.json --out pipeline.yaml
  voxveil pipeline run --local --no-docker --params params.yaml --root runs/first

compile writes two YAML documents: the pipeline, and what Kubernetes needs for it. Upload the file on
Kubeflow's page, or with 'kfp pipeline create'. Systems and variants are fixed by the params file; values
may be changed in the parameter 'params' of a run.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of ``voxveil pipeline``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    compile_ = actions.add_parser("compile", help="write the pipeline as YAML")
    compile_.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    compile_.add_argument(
        "--images",
        type=Path,
        default=Path("images.lock.json"),
        metavar="FILE",
        help='images by digest: {"cpu": ..., "gpu": ...} (%(default)s)',
    )
    run_ = actions.add_parser("run", help="run the pipeline on this machine")
    run_.add_argument(
        "--local", action="store_true", help="on this machine (the only place this action knows)"
    )
    run_.add_argument(
        "--no-docker", action="store_true", help="each stage as a process of this Python environment"
    )
    run_.add_argument(
        "--root", type=Path, required=True, metavar="DIR", help="folder that gets one folder per task"
    )
    for action in (compile_, run_):
        action.add_argument(
            "--params",
            type=Path,
            default=Path("params.yaml"),
            metavar="FILE",
            help="params file (%(default)s)",
        )
        action.add_argument(
            "--project", type=Path, default=Path(), metavar="DIR", help="checkout that holds pipelines/ (.)"
        )


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 when the file is written or every task is done."""
    return _compile(args) if args.action == "compile" else _run_local(args)


def _compile(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root
    from voxveil.kubeflow.resources import load_images
    from voxveil.storage.atomic import write_text

    text = compile_pipeline(project_root(args.project), load_params(args.params), load_images(args.images))
    if args.out is None:
        print(text, end="")
    else:
        write_text(args.out, text)
        print(f"{args.out}: written", file=sys.stderr)
    return 0


def _run_local(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root
    from voxveil.kubeflow.graph import read_pipeline
    from voxveil.kubeflow.local import run_pipeline
    from voxveil.kubeflow.resources import Images

    if not (args.local and args.no_docker):
        raise InputError(
            "pipeline run: only --local --no-docker is there; elsewhere upload the compiled file"
        )
    # No image is used; these names only fill the compiled file.
    images = Images("voxveil-cpu", "voxveil-gpu")
    text = compile_pipeline(project_root(args.project), load_params(args.params), images)
    pipeline = read_pipeline(text)
    results = run_pipeline(pipeline, args.root, report=lambda line: print(line, flush=True))
    print(f"{len(results)} tasks done; the report is in {args.root / 'report' / 'report_files'}")
    return 0
