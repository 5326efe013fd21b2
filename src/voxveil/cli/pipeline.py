"""``voxveil pipeline``: compile the Kubeflow pipelines, run them here, start them on a server."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.cli.actions import add_action, add_actions, add_params
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.kubeflow.pods import Images
    from voxveil.kubeflow.server import Server
    from voxveil.kubeflow.submitting import Order

__all__ = ["EPILOG", "HELP", "add_arguments"]

#: Runs that ``status`` shows.
_SHOWN = 10

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
    actions = add_actions(parser)
    compile_ = add_action(actions, "compile", _compile, "write the pipeline as YAML")
    compile_.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    run_ = add_action(actions, "run", _run_local, "run the pipeline on this machine")
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
    submit = add_action(actions, "submit", _submit, "start a run on the server KFP_ENDPOINT")
    schedule = add_action(actions, "schedule", _schedule, "start runs at set times, one at a time")
    schedule.add_argument(
        "--cron",
        metavar="EXPR",
        help="six fields: second minute hour day month weekday, in the cluster's time zone",
    )
    schedule.add_argument("--delete", action="store_true", help="delete the schedule --name instead")
    status = add_action(
        actions, "status", _status, "show schedules and runs, or one run with its failed tasks"
    )
    status.add_argument("run_name", nargs="?", default="", metavar="RUN", help="id or name")
    cancel = add_action(actions, "cancel", _cancel, "stop a run")
    cancel.add_argument("run_name", metavar="RUN", help="id or name")
    _add_fetch(add_action(actions, "fetch", _fetch, "bring the results of a finished run into a folder"))
    step = add_action(actions, "step", _step, "run one step of a pipeline; only a launcher calls this")
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
    add_params(action)
    action.add_argument(
        "--project", type=Path, default=Path(), metavar="DIR", help="checkout that holds pipelines/ (.)"
    )
    action.add_argument(
        "--draws", type=int, metavar="N", help="of the noise per variant, for a pipeline that has draws"
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


def _fetch(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.fetching import fetch_results, finished_here, finished_on_server

    folder = Path(args.run_name)
    if folder.is_dir():
        run_ = finished_here(folder)
    else:
        try:
            server = _server()
        except InputError as error:
            raise InputError(f"{args.run_name}: no such folder here, and {error}") from None
        run_ = finished_on_server(server, args.experiment, args.run_name)
    for line in fetch_results(run_, args.project, scores=args.scores, endpoint=args.endpoint):
        print(line)
    return 0


def _compiled(args: argparse.Namespace, images: Images) -> str:
    """Return the pipeline that the arguments name, as YAML."""
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root

    params = load_params(args.params)
    return compile_pipeline(project_root(args.project), params, images, args.pipeline, draws=args.draws)


def _compile(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.pods import load_images
    from voxveil.runtime.atomic import write_text

    text = _compiled(args, load_images(args.images))
    if args.out is None:
        print(text, end="")
    else:
        write_text(args.out, text)
        print(f"{args.out}: written", file=sys.stderr)
    return 0


def _step(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.steps.running import run_step

    return run_step(args.step, args.executor_input)


def _run_local(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.graph import read_arguments, read_pipeline
    from voxveil.kubeflow.local import run_pipeline
    from voxveil.kubeflow.pods import Images

    if not args.local:
        raise InputError("pipeline run: needs --local; 'pipeline submit' starts a run on a cluster")
    pipeline = read_pipeline(_compiled(args, Images(args.cpu_image, args.gpu_image)))

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


def _server() -> Server:
    from voxveil.kubeflow.server import Server, find_endpoint

    return Server(find_endpoint())


def _cancel(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.submitting import cancel

    run_id, active = cancel(_server(), args.experiment, args.run_name)
    print(f"{run_id}: {'stopping' if active else 'had ended already'}")
    return 0


def _submit(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.submitting import submit

    server = _server()
    order, images = _order(args)
    run_id, started = submit(server, order, images)
    print(f"{run_id}: {'started' if started else 'is active already'}; version {order.version}")
    print(_address(server, run_id))
    return 0


def _schedule(args: argparse.Namespace) -> int:
    from voxveil.kubeflow.cron import check_cron
    from voxveil.kubeflow.submitting import schedule, unschedule

    if bool(args.cron) == args.delete:
        raise InputError("pipeline schedule: needs either --cron EXPR, or --delete with --name NAME")
    if args.delete and not args.name:
        raise InputError("pipeline schedule --delete: needs --name NAME")
    server = _server()
    if args.delete:
        count = unschedule(server, args.experiment, args.name)
        if not count:
            raise InputError(
                f"--name {args.name}: experiment {args.experiment!r} has no schedule of this name"
            )
        print(f"{args.name}: {count} deleted; runs it started go on")
        return 0
    # What can be refused here is refused before anything is compiled or sent.
    check_cron(args.cron)
    order, images = _order(args)
    schedule_id, what = schedule(server, order, images, args.cron)
    print(f"{schedule_id}: {what}; version {order.version}, at {args.cron!r}, one run at a time")
    return 0


def _order(args: argparse.Namespace) -> tuple[Order, Images]:
    from voxveil.kubeflow.graph import read_arguments, read_pipeline
    from voxveil.kubeflow.pods import load_images
    from voxveil.kubeflow.submitting import Order

    images = load_images(args.images)
    text = _compiled(args, images)
    arguments = read_arguments(read_pipeline(text), args.set)
    order = Order(text, args.experiment, args.name, arguments, args.pipeline_root, args.service_account)
    return order, images


def _status(args: argparse.Namespace) -> int:
    server = _server()
    if args.run_name:
        return _one(server, args)
    experiment = server.experiment_id(args.experiment, make=False)
    if not experiment:
        print(f"experiment {args.experiment!r}: nothing was ever started in it")
        return 0
    for schedule in server.schedules(experiment):
        timed = schedule.trigger.cron_schedule if schedule.trigger else None
        when = timed.cron if timed else "at fixed intervals"
        print(f"schedule  {schedule.recurring_run_id}  {schedule.status}  {when}  {schedule.display_name}")
    for run_ in server.runs(experiment, limit=_SHOWN):
        print(f"run  {run_.run_id}  {run_.state}  {_time(run_.created_at)}  {run_.display_name}")
    return 0


def _one(server: Server, args: argparse.Namespace) -> int:
    from voxveil.kubeflow.submitting import find_started

    found = find_started(server, args.experiment, args.run_name)
    ended = f", ended {_time(found.finished_at)}" if _time(found.finished_at) else ""
    print(f"{found.run_id}  {found.state}  {found.display_name}: started {_time(found.created_at)}{ended}")
    tasks = (found.run_details.task_details or []) if found.run_details else []
    counts = Counter(task.state or "not started" for task in tasks)
    if counts:
        print("tasks: " + ", ".join(f"{number} {state}" for state, number in sorted(counts.items())))
    for task in sorted(tasks, key=lambda task: str(task.display_name)):
        if task.state == "FAILED":
            print(f"failed: {task.display_name}: {_error(task)}")
    if found.error:
        print(f"error: {_error(found)}")
    print(_address(server, found.run_id))
    return 0


def _error(item: Any) -> str:
    text = " ".join(str(item.error.message or "").split()) if item.error else ""
    return text or "see the log of its pod"


def _time(moment: Any) -> str:
    # Servers write the year 1 or 1970 for "not yet".
    return "" if moment is None or moment.year < 2000 else f"{moment:%Y-%m-%d %H:%M:%S}"


def _address(server: Server, run_id: str) -> str:
    return f"{server.endpoint.url}/#/runs/details/{run_id}"
