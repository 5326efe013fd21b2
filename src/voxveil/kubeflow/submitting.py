"""Runs and schedules on a Kubeflow server: submit, update, show, cancel.

A version of a pipeline is named by the SHA-256 of its compiled file, so the same params and images
are uploaded once, and what a run or schedule executes can be told from its version's name.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.kubeflow.cron import check_cron
from voxveil.kubeflow.graph import read_pipeline
from voxveil.kubeflow.pods import Images
from voxveil.kubeflow.server import KubeflowError, Server
from voxveil.kubeflow.store import parse_location
from voxveil.runtime.errors import InputError

__all__ = ["Order", "cancel", "find_started", "schedule", "submit", "unschedule"]

#: States of a run that has not ended.
ACTIVE = ("PENDING", "RUNNING", "CANCELING", "PAUSED", "RUNTIME_STATE_UNSPECIFIED")

_HEX = 16


@dataclass(frozen=True)
class Order:
    """A pipeline to run with its parameters.

    Attributes:
        text: The compiled pipeline.
        experiment: Kubeflow's experiment.
        name: Name of the run or schedule; empty for the pipeline's with its version.
        arguments: Arguments of the pipeline; its defaults fill in.
        pipeline_root: Where artifacts go, empty for the cluster's default.
        service_account: Service account of the pods, empty for the cluster's default.
    """

    text: str
    experiment: str
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    pipeline_root: str = ""
    service_account: str = ""

    @property
    def version(self) -> str:
        """Name of the version: the beginning of the SHA-256 of the compiled file."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:_HEX]


def check_order(order: Order, images: Images) -> str:
    """Return the pipeline's name if the order may leave this machine.

    Raises:
        InputError: An image is not one of ``images`` (digests), an argument is unknown, or the pipeline
            root cannot be read.
    """
    pipeline = read_pipeline(order.text)
    for task in pipeline.tasks:
        if task.image not in (images.cpu, images.gpu):
            raise InputError(
                f"task {task.title}: image {task.image} is not in the image lock; compile it again"
            )
    for name in order.arguments:
        if name not in pipeline.parameters:
            known = ", ".join(sorted(pipeline.parameters)) or "none"
            raise InputError(f"pipeline {pipeline.name}: has no argument {name!r}; it has: {known}")
    missing = sorted(set(pipeline.parameters) - set(pipeline.defaults) - set(order.arguments))
    if missing:
        raise InputError(
            f"pipeline {pipeline.name}: argument {missing[0]} is missing (--set {missing[0]}=VALUE)"
        )
    if order.pipeline_root and parse_location(order.pipeline_root) is None:
        raise InputError(
            f"--pipeline-root {order.pipeline_root}: must be s3://BUCKET/KEY or minio://BUCKET/KEY"
        )
    return pipeline.name


def submit(server: Server, order: Order, images: Images) -> tuple[str, bool]:
    """Start a run unless one of its name that is the same is still active.

    Returns:
        The run's id, and whether it was started now.

    Raises:
        InputError: An active run of this name runs something else.
        KubeflowError: The server is away or refuses.
    """
    pipeline, experiment, reference = _prepare(server, order, images)
    name = order.name or f"{pipeline} {order.version}"
    wanted = _runtime(order)
    for run in server.runs(experiment, name):
        if run.state not in ACTIVE:
            continue
        if _same_reference(run, reference) and _runtime_of(run) == wanted:
            return str(run.run_id), False
        raise InputError(
            f"run {name!r} ({run.run_id}) is active with another pipeline or other arguments; wait for it,"
            " cancel it, or give --name"
        )
    body = server.api.V2beta1Run(**_body(server, order, name, experiment, reference))
    return str(server.start(body).run_id), True


def schedule(server: Server, order: Order, images: Images, cron: str) -> tuple[str, str]:
    """Create or replace the schedule of this name.

    One run at a time; times missed while the cluster was away are not made up for. A schedule cannot be
    changed, only replaced: the old one is switched off first, so that never two are on, and on again
    where the new one cannot be made.

    Returns:
        The schedule's id, and ``made``, ``replaced`` or ``unchanged``.

    Raises:
        InputError: The expression or the order is wrong.
        KubeflowError: The server is away or refuses.
    """
    cron = check_cron(cron)
    pipeline, experiment, reference = _prepare(server, order, images)
    name = order.name or pipeline
    old = server.schedules(experiment, name)
    if len(old) == 1 and _is_wanted(old[0], order, reference, cron):
        return str(old[0].recurring_run_id), "unchanged"
    api = server.api
    body = api.V2beta1RecurringRun(
        **_body(server, order, name, experiment, reference),
        trigger=api.V2beta1Trigger(cron_schedule=api.V2beta1CronSchedule(cron=cron)),
        max_concurrency="1",
        no_catchup=True,
        mode="ENABLE",
    )
    switched_off = [recurring for recurring in old if recurring.status != "DISABLED"]
    for recurring in switched_off:
        server.enable_schedule(recurring.recurring_run_id, False)
    try:
        created = server.create_schedule(body)
    except KubeflowError:
        for recurring in switched_off:
            server.enable_schedule(recurring.recurring_run_id, True)
        raise
    for recurring in old:
        server.delete_schedule(recurring.recurring_run_id)
    return str(created.recurring_run_id), "replaced" if old else "made"


def unschedule(server: Server, experiment: str, name: str) -> int:
    """Delete the schedules of this name and return their number."""
    experiment_id = server.experiment_id(experiment, make=False)
    found = server.schedules(experiment_id, name) if experiment_id else []
    for recurring in found:
        server.delete_schedule(recurring.recurring_run_id)
    return len(found)


def find_started(server: Server, experiment: str, text: str) -> Any:
    """Return the run with this id or, where none has it, the newest of this name.

    Raises:
        InputError: There is none.
    """
    run = server.run(text) if "/" not in text and " " not in text else None
    if run is None:
        experiment_id = server.experiment_id(experiment, make=False)
        found = server.runs(experiment_id, text, 1) if experiment_id else []
        if not found:
            raise InputError(
                f"{text}: no run with this id, and none of this name in experiment {experiment!r}"
            )
        run = server.run(found[0].run_id) or found[0]
    return run


def cancel(server: Server, experiment: str, text: str) -> tuple[str, bool]:
    """Stop a run; return its id, and whether it was still active."""
    run = find_started(server, experiment, text)
    active = run.state in ACTIVE
    if active and run.state != "CANCELING":
        server.terminate(run.run_id)
    return str(run.run_id), active


def _prepare(server: Server, order: Order, images: Images) -> tuple[str, str, tuple[str, str]]:
    """Check an order and upload its pipeline; return its name, the experiment and the uploaded version."""
    pipeline = check_order(order, images)
    experiment = server.experiment_id(order.experiment, make=True)
    with tempfile.TemporaryDirectory(prefix="voxveil-") as folder:
        file = Path(folder) / f"{pipeline}.yaml"
        file.write_text(order.text, encoding="utf-8")
        description = f"voxveil, SHA-256 {order.version}"
        return pipeline, experiment, server.pipeline_version(pipeline, order.version, file, description)


def _body(
    server: Server, order: Order, name: str, experiment: str, reference: tuple[str, str]
) -> dict[str, Any]:
    """Return what a run and a schedule have in common."""
    pipeline_id, version_id = reference
    arguments, root = _runtime(order)
    api = server.api
    version = api.V2beta1PipelineVersionReference(pipeline_id=pipeline_id, pipeline_version_id=version_id)
    return {
        "display_name": name,
        "experiment_id": experiment,
        "pipeline_version_reference": version,
        "runtime_config": api.V2beta1RuntimeConfig(parameters=arguments, pipeline_root=root or None),
        "service_account": order.service_account or None,
    }


def _runtime(order: Order) -> tuple[dict[str, Any], str]:
    return dict(order.arguments), order.pipeline_root


def _runtime_of(item: Any) -> tuple[dict[str, Any], str]:
    config = item.runtime_config
    return (dict(config.parameters or {}), config.pipeline_root or "") if config else ({}, "")


def _same_reference(item: Any, reference: tuple[str, str]) -> bool:
    got = item.pipeline_version_reference
    return got is not None and (got.pipeline_id, got.pipeline_version_id) == reference


def _is_wanted(item: Any, order: Order, reference: tuple[str, str], cron: str) -> bool:
    timed = item.trigger.cron_schedule if item.trigger else None
    return (
        _same_reference(item, reference)
        and _runtime_of(item) == _runtime(order)
        and timed is not None
        and timed.cron == cron
        and str(item.max_concurrency) == "1"
        and item.no_catchup is True
        and item.status == "ENABLED"
        and (not order.service_account or item.service_account == order.service_account)
    )
