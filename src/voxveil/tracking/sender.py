"""The sender process of :mod:`voxveil.tracking.stream`: reads lines of JSON, writes an MLflow run.

The first line describes the training, each further one is a point or the final status. Input
that ends without a status means that the stage was killed.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from voxveil.runtime.errors import VoxveilError
from voxveil.tracking.client import Tracker, common_tags, connect
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import resolve_store, warn

__all__ = ["send"]

#: MLflow's own switch.
ENABLED = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"


@contextmanager
def system_metrics(run_id: str, store: str) -> Iterator[None]:
    """Log system metrics to a run while the block runs, where :data:`ENABLED` is ``true``.

    Args:
        run_id: The training's run.
        store: Address of the tracking store.
    """
    if os.environ.get(ENABLED, "").lower() not in ("1", "true"):
        yield
        return
    try:
        import psutil
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor
    except ImportError:
        warn("system metrics need psutil; install it, or unset " + ENABLED)
        yield
        return
    # Its first reading is otherwise of the time since nothing.
    psutil.cpu_percent()
    monitor = SystemMetricsMonitor(run_id, resume_logging=True, tracking_uri=store)
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()


_BATCH = 200
Line = Mapping[str, Any]


def main() -> int:
    """Send the training read from standard input; report a failure in one line."""
    # Ctrl-C reaches the whole foreground group; the stage decides how the run ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
    first = sys.stdin.buffer.readline()
    if not first:
        return 0
    training = json.loads(first)
    # The pipe is emptied at all times, so that a slow server never holds the training up.
    threading.Thread(target=_drain, args=(sys.stdin.buffer, lines), daemon=True).start()
    try:
        send(training, lines)
    except VoxveilError as error:
        warn(f"{training['label']}: curves are only in curve.csv: {error}")
    return 0


def send(training: Line, lines: queue.SimpleQueue[Line]) -> None:
    """Open the training's run at its first point, send its points as they come and close it.

    Args:
        training: ``label``, ``stage``, ``key``, ``fingerprint``, ``data`` (its speech) and ``params``.
        lines: Points (``step``, ``time`` in ms since 1970, ``values``) and at last a ``status``.

    Raises:
        VoxveilError: MLflow is missing, away or refuses.
    """
    points, status = _take(lines)
    if not points:
        # Nothing was trained: the identity, or the original system. The stage kills this process, so there
        # must be no contact yet: a database that is being made would stay half made.
        return
    tracker = connect(resolve_store())
    run_id, sent = _open(tracker, training)
    with system_metrics(run_id, tracker.store.uri):
        _log(tracker, run_id, training["stage"], points, sent)
        while not status:
            points, status = _take(lines)
            _log(tracker, run_id, training["stage"], points, sent)
    with tracker.burst() as client:
        client.set_terminated(run_id, status)


def _drain(source: Iterable[bytes], lines: queue.SimpleQueue[Line]) -> None:
    for line in source:
        try:
            lines.put(json.loads(line))
        except ValueError:
            break  # half a line: the stage was killed while it wrote
    lines.put({"status": "KILLED"})


def _open(tracker: Tracker, training: Line) -> tuple[str, dict[str, int]]:
    """Find this fingerprint's run or make it, and read how far its curves go."""
    from mlflow.entities import Param

    with tracker.burst() as client:
        found = tracker.find(fingerprint=training["fingerprint"])
        if found:
            run_id = str(found[0].info.run_id)
            sent = {
                name: max(m.step for m in client.get_metric_history(run_id, name))
                for name in found[0].data.metrics
            }
            client.update_run(run_id, status="RUNNING")
            return run_id, sent
        facts = {name: training[name] for name in ("fingerprint", "stage", "key")}
        tags = {f"{PREFIX}{name}": value for name, value in {**facts, **training["data"]}.items()}
        tags.update(common_tags())
        run = client.create_run(
            tracker.experiment_id,
            tags={name: value for name, value in tags.items() if value},
            run_name=f"{training['stage']} {training['key']}".strip(),
        )
        client.log_batch(run.info.run_id, params=[Param(*param) for param in training["params"].items()])
        return str(run.info.run_id), {}


def _take(lines: queue.SimpleQueue[Line]) -> tuple[list[Line], str]:
    """Wait for a point, then collect all queued ones; the text is the final status."""
    points: list[Line] = []
    line = lines.get()
    while "status" not in line:
        points.append(line)
        if len(points) >= _BATCH or lines.empty():
            return points, ""
        line = lines.get()
    return points, str(line["status"])


def _log(tracker: Tracker, run_id: str, stage: str, points: list[Line], sent: dict[str, int]) -> None:
    from mlflow.entities import Metric

    metrics: list[Any] = []
    for point in points:
        for name, value in point["values"].items():
            full = f"{stage}/{name}"
            if point["step"] > sent.get(full, -1):
                metrics.append(Metric(full, value, point["time"], point["step"]))
                sent[full] = point["step"]
    for start in range(0, len(metrics), 900):
        with tracker.burst() as client:
            client.log_batch(run_id, metrics=metrics[start : start + 900])


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # The thread that empties the pipe may be waiting in it, and Python dies of that in an orderly end.
    os._exit(status)
