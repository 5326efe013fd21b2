"""Stream a training curve to an MLflow run of its own, without ever holding the training up.

All of MLflow (its import, the set-up of a database, each request) happens in a background
thread fed by a queue. The curve that counts is the stage's ``curve.csv``.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.errors import VoxveilError
from voxveil.tracking.client import Tracker, common_tags, connect
from voxveil.tracking.names import PREFIX, finite, flat_params
from voxveil.tracking.store import resolve_store, tracking_enabled, warn

__all__ = ["Sink", "Training", "training_sink"]

#: Told each point of a curve: (optimizer step, values by name).
Sink = Callable[[int, dict[str, float]], None]

#: How long a finished stage waits for its last points to arrive, in seconds.
_PATIENCE = 300.0
_BATCH = 200


class Training(Protocol):
    """What describes a training: a stage's context."""

    @property
    def stage(self) -> str:
        """Stem of the stage."""

    @property
    def key(self) -> str:
        """Variant or system, empty for stages without one."""

    @property
    def params(self) -> Params:
        """All parameters."""

    @property
    def fingerprint(self) -> str:
        """Hash of the stage's parameters, inputs and code."""


@contextmanager
def training_sink(context: Training) -> Iterator[Sink]:
    """Yield a sink that streams a stage's curve to MLflow.

    The run is found again by the tag ``voxveil.fingerprint``: a killed stage that resumes
    continues its run, and points already there are not sent twice.

    Args:
        context: The running stage; its name, key, fingerprint and parameters describe the run.
    """
    if not tracking_enabled():
        yield _ignore
        return
    worker = _Worker(context)
    worker.start()
    status = "FAILED"
    try:
        yield worker.put
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        worker.finish(status)


def _ignore(step: int, values: dict[str, float]) -> None:
    """Take a point and do nothing: tracking is off."""


class _Worker(threading.Thread):
    """Owns all contact with MLflow for one training."""

    def __init__(self, context: Training) -> None:
        super().__init__(name=f"mlflow-{context.stage}", daemon=True)
        self._context = context
        self._points: queue.SimpleQueue[tuple[int, int, dict[str, float]] | str] = queue.SimpleQueue()
        self._sent: dict[str, int] = {}

    def put(self, step: int, values: dict[str, float]) -> None:
        """Queue a point; returns at once."""
        self._points.put((int(step), int(time.time() * 1000), dict(values)))

    def finish(self, status: str) -> None:
        """Queue the end of the run and wait a bounded time for it to arrive."""
        self._points.put(status)
        self.join(_PATIENCE)
        if self.is_alive():
            warn(f"{self._label}: MLflow did not take the curve within {_PATIENCE:.0f} s; it is in curve.csv")

    @property
    def _label(self) -> str:
        key = self._context.key
        return f"{self._context.stage}[{key}]" if key else self._context.stage

    def run(self) -> None:
        try:
            tracker = connect(resolve_store())
            run_id = self._open(tracker)
            status = ""
            while not status:
                points, status = self._take()
                self._send(tracker, run_id, points)
            with tracker.burst() as client:
                client.set_terminated(run_id, status)
        except VoxveilError as error:
            warn(f"{self._label}: curves are only in curve.csv: {error}")

    def _open(self, tracker: Tracker) -> str:
        """Find this fingerprint's run or make it, and read how far its curves go."""
        context = self._context
        with tracker.burst() as client:
            found = tracker.find(fingerprint=context.fingerprint)
            if found:
                run_id = str(found[0].info.run_id)
                for name in found[0].data.metrics:
                    self._sent[name] = max(m.step for m in client.get_metric_history(run_id, name))
                client.update_run(run_id, status="RUNNING")
                return run_id
            tags = {
                f"{PREFIX}fingerprint": context.fingerprint,
                f"{PREFIX}stage": context.stage,
                f"{PREFIX}key": context.key,
                **common_tags(),
            }
            name = f"{context.stage} {context.key}".strip()
            run = client.create_run(
                tracker.experiment_id, tags={k: v for k, v in tags.items() if v}, run_name=name
            )
            client.log_batch(run.info.run_id, params=_params(context))
            return str(run.info.run_id)

    def _take(self) -> tuple[list[tuple[int, int, dict[str, float]]], str]:
        """Wait for a point, then gather what else is there; the text is the final status."""
        points: list[tuple[int, int, dict[str, float]]] = []
        item = self._points.get()
        while not isinstance(item, str):
            points.append(item)
            if len(points) >= _BATCH or self._points.empty():
                return points, ""
            item = self._points.get()
        return points, item

    def _send(self, tracker: Tracker, run_id: str, points: list[tuple[int, int, dict[str, float]]]) -> None:
        from mlflow.entities import Metric

        metrics: list[Any] = []
        for step, when, values in points:
            for name, value in finite(values).items():
                full = f"{self._context.stage}/{name}"
                if step > self._sent.get(full, -1):
                    metrics.append(Metric(full, value, when, step))
                    self._sent[full] = step
        for start in range(0, len(metrics), 900):
            with tracker.burst() as client:
                client.log_batch(run_id, metrics=metrics[start : start + 900])


def _params(context: Training) -> list[Any]:
    from mlflow.entities import Param

    everything = to_mapping(context.params)
    section = dict(everything[context.stage])
    content = {"base": everything["base"], context.stage: section}
    if context.key in section.get("variants", {}):
        section["variants"] = {context.key: section["variants"][context.key]}
    elif context.key in everything["systems"]:
        content["systems"] = {context.key: everything["systems"][context.key]}
    return [Param(name, value) for name, value in sorted(flat_params(content).items())][:100]
