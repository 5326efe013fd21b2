"""``voxveil pipeline``: compile the Kubeflow pipelines, run them here, start them on a server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from voxveil.research.probe import DRAWS
from voxveil.runtime.errors import InputError

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Compile the Kubeflow pipelines of this checkout; run, start, schedule, show, stop and fetch them."

EPILOG = """examples:
  voxveil pipeline compile --params params.yaml --images images.lock.json --out pipeline.yaml
  voxveil pipeline run --local --params params.yaml --root runs/first            # in containers
  voxveil pipeline run --local --no-docker --params params.yaml --root runs/first
  export KFP_ENDPOINT=https://kubeflow.example.org/pipeline KFP_NAMESPACE=speech KFP_TOKEN_FILE=token
  voxveil pipeline submit --params params.yaml
  voxveil pipeline schedule --cron '0 0 3 * * 1' --name weekly       # Mondays at three
  voxveil pipeline status                                            # schedules and the newest runs
  voxveil pipeline status RUN && voxveil pipeline cancel RUN
  voxveil pipeline fetch RUN --project run/ && voxveil reproduce NAME --project run/ --out page/

compile writes two YAML documents: the pipeline, and what Kubernetes needs for it. Systems and variants are
fixed by the params file; submit and schedule compile it, and take images by digest only. Submitting what is
still running starts nothing; scheduling under the same name replaces the schedule.

fetch brings params.yaml, outputs/evaluate and outputs/report of a finished run, each held against its digest;
MLflow (MLFLOW_TRACKING_URI) says where they lie, the AWS_* variables how to read them. It never replaces an
edited params.yaml or other outputs, and can be run again. Scores name private utterances: only --scores
brings them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of ``voxveil pipeline``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    compile_ = actions.add_parser("compile", help="write the pipeline as YAML")
    compile_.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    run_ = actions.add_parser("run", help="run the pipeline on this machine")
    run_.add_argument(
        "--local", action="store_true", help="on this machine (the only place this action knows)"
    )
    run_.add_argument(
        "--no-docker",
        action="store_true",
        help="each stage as a process of this Python environment, not in a container",
    )
    for target in ("cpu", "gpu"):
        run_.add_argument(
            f"--{target}-image",
            default=f"voxveil-{target}:1.0",
            metavar="IMAGE",
            help="image on this machine, by tag (%(default)s)",
        )
    run_.add_argument(
        "--network",
        default="none",
        metavar="NAME",
        help="Docker network of the containers; host reaches servers on this machine (%(default)s)",
    )
    run_.add_argument(
        "--root", type=Path, required=True, metavar="DIR", help="folder that gets one folder per task"
    )
    submit = actions.add_parser("submit", help="start a run on the server KFP_ENDPOINT")
    schedule = actions.add_parser("schedule", help="start runs at set times, one at a time")
    schedule.add_argument(
        "--cron",
        metavar="EXPR",
        help="six fields: second minute hour day month weekday, in the cluster's time zone",
    )
    schedule.add_argument("--delete", action="store_true", help="delete the schedule --name instead")
    status = actions.add_parser("status", help="show schedules and runs, or one run with its failed tasks")
    status.add_argument("run_name", nargs="?", default="", metavar="RUN", help="id or name")
    cancel = actions.add_parser("cancel", help="stop a run")
    cancel.add_argument("run_name", metavar="RUN", help="id or name")
    _add_fetch(actions.add_parser("fetch", help="bring the results of a finished run into a folder"))
    step = actions.add_parser("step", help="run one step of a pipeline; only a launcher calls this")
    step.add_argument("step", metavar="NAME", help="step, e.g. gate")
    step.add_argument("--executor-input", required=True, metavar="JSON", help="Kubeflow's executor input")
    for action in (compile_, submit, schedule):
        action.add_argument(
            "--images",
            type=Path,
            default=Path("images.lock.json"),
            metavar="FILE",
            help='images by digest: {"cpu": ..., "gpu": ...} (%(default)s)',
        )
    for action in (compile_, run_, submit, schedule):
        _add_source(action)
    for action in (run_, submit, schedule):
        action.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="argument of the pipeline (repeatable)",
        )
    for action in (submit, schedule):
        _add_order(action)
    for action in (submit, schedule, status, cancel, actions.choices["fetch"]):
        action.add_argument(
            "--experiment", default="voxveil", metavar="NAME", help="Kubeflow's experiment (%(default)s)"
        )


def _add_fetch(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument("run_name", metavar="RUN", help="id or name, or the folder of a local run")
    fetch.add_argument(
        "--project",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="checkout or new folder that gets them (.)",
    )
    fetch.add_argument(
        "--scores", action="store_true", help="also outputs/score, which names private utterances"
    )
    fetch.add_argument(
        "--endpoint",
        default="",
        metavar="URL",
        help="the S3 server as seen from here, where the pods use another address",
    )


def _add_source(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--pipeline",
        default="train_and_evaluate",
        metavar="NAME",
        help="a file of pipelines/ (%(default)s)",
    )
    action.add_argument(
        "--params", type=Path, default=Path("params.yaml"), metavar="FILE", help="params file (%(default)s)"
    )
    action.add_argument(
        "--project", type=Path, default=Path(), metavar="DIR", help="checkout that holds pipelines/ (.)"
    )
    action.add_argument(
        "--draws", type=int, metavar="N", help=f"of the noise per variant, for probe_features ({DRAWS})"
    )


def _add_order(action: argparse.ArgumentParser) -> None:
    action.add_argument("--name", default="", metavar="NAME", help="name of the run or schedule")
    action.add_argument(
        "--pipeline-root",
        default="",
        metavar="URI",
        help="where artifacts go (default: as the cluster is set)",
    )
    action.add_argument(
        "--service-account", default="", metavar="NAME", help="of the pods (default: as the cluster is set)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 when it is done whole."""
    if args.action == "compile":
        return _compile(args)
    if args.action == "run":
        return _run_local(args)
    if args.action == "step":
        from voxveil.kubeflow.steps.running import run_step

        return run_step(args.step, args.executor_input)
    if args.action == "fetch":
        return _fetch(args)
    from voxveil.cli import pipeline_server

    return pipeline_server.run(args)


def _fetch(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.fetching import fetch_results, finished_here, finished_on_server
    from voxveil.kubeflow.server import Server, find_endpoint

    folder = Path(args.run_name)
    if folder.is_dir():
        run_ = finished_here(folder)
    else:
        try:
            server = Server(find_endpoint())
        except InputError as error:
            raise InputError(f"{args.run_name}: no such folder here, and {error}") from None
        run_ = finished_on_server(server, args.experiment, args.run_name)
    for line in fetch_results(run_, args.project, scores=args.scores, endpoint=args.endpoint):
        print(line)
    return 0


def _compile(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root
    from voxveil.kubeflow.pods import load_images
    from voxveil.runtime.atomic import write_text

    params, images = load_params(args.params), load_images(args.images)
    text = compile_pipeline(project_root(args.project), params, images, args.pipeline, draws=args.draws)
    if args.out is None:
        print(text, end="")
    else:
        write_text(args.out, text)
        print(f"{args.out}: written", file=sys.stderr)
    return 0


def _run_local(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root
    from voxveil.kubeflow.graph import read_arguments, read_pipeline
    from voxveil.kubeflow.local import run_pipeline
    from voxveil.kubeflow.pods import Images

    if not args.local:
        raise InputError("pipeline run: only --local is there; 'pipeline submit' starts a run on a cluster")
    images = Images(args.cpu_image, args.gpu_image)
    params = load_params(args.params)
    text = compile_pipeline(project_root(args.project), params, images, args.pipeline, draws=args.draws)
    pipeline = read_pipeline(text)

    def report(line: str) -> None:
        print(line, flush=True)

    execute = None
    if not args.no_docker:
        from voxveil.kubeflow.docker import docker_execute, require_images

        require_images(pipeline)
        execute = docker_execute(args.root, report, network=args.network)
    arguments = read_arguments(pipeline, args.set)
    results = run_pipeline(pipeline, args.root, arguments=arguments, report=report, execute=execute)
    print(f"{len(results)} tasks done; one folder each in {args.root}")
    return 0
