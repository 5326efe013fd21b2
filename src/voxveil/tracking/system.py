"""MLflow's system metrics of a training: processor, memory, disk, network, and any GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from voxveil.tracking.store import warn

__all__ = ["ENABLED", "system_metrics"]

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
