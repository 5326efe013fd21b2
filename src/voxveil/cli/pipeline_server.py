"""The actions of ``voxveil pipeline`` that speak to a Kubeflow server: submit, schedule, status, cancel."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.kubeflow.pods import Images
    from voxveil.kubeflow.server import Server
    from voxveil.kubeflow.submitting import Order

__all__ = ["run"]

#: Runs that ``status`` shows.
_SHOWN = 10


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 when it is done whole."""
    from voxveil.kubeflow.server import Server, find_endpoint
    from voxveil.kubeflow.submitting import cancel

    if args.action == "schedule" and bool(args.cron) == args.delete:
        raise InputError("pipeline schedule: give --cron EXPR, or --delete with --name NAME")
    if args.action == "schedule" and args.delete and not args.name:
        raise InputError("pipeline schedule --delete: give --name NAME")
    server = Server(find_endpoint())
    if args.action == "submit":
        return _submit(server, args)
    if args.action == "schedule":
        return _schedule(server, args)
    if args.action == "status":
        return _status(server, args)
    run_id, active = cancel(server, args.experiment, args.run_name)
    print(f"{run_id}: {'stopping' if active else 'had ended already'}")
    return 0


def _submit(server: Server, args: argparse.Namespace) -> int:
    from voxveil.kubeflow.submitting import submit

    order, images = _order(args)
    run_id, started = submit(server, order, images)
    print(f"{run_id}: {'started' if started else 'is active already'}; version {order.version}")
    print(_address(server, run_id))
    return 0


def _schedule(server: Server, args: argparse.Namespace) -> int:
    from voxveil.kubeflow.cron import check_cron
    from voxveil.kubeflow.submitting import schedule, unschedule

    if args.delete:
        count = unschedule(server, args.experiment, args.name)
        if not count:
            raise InputError(
                f"--name {args.name}: no schedule of this name in experiment {args.experiment!r}"
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
    from voxveil.config import load_params
    from voxveil.kubeflow.compile import compile_pipeline, project_root
    from voxveil.kubeflow.graph import read_arguments, read_pipeline
    from voxveil.kubeflow.pods import load_images
    from voxveil.kubeflow.submitting import Order

    images = load_images(args.images)
    params = load_params(args.params)
    text = compile_pipeline(project_root(args.project), params, images, args.pipeline, draws=args.draws)
    arguments = read_arguments(read_pipeline(text), args.set)
    order = Order(text, args.experiment, args.name, arguments, args.pipeline_root, args.service_account)
    return order, images


def _status(server: Server, args: argparse.Namespace) -> int:
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
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.state or "not started"] = counts.get(task.state or "not started", 0) + 1
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
