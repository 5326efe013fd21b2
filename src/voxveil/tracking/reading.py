"""Read-only connection to MLflow."""

from __future__ import annotations

from voxveil.runtime.errors import InputError
from voxveil.tracking.client import Tracker, connect
from voxveil.tracking.store import Store

__all__ = ["connect_to_read"]


def connect_to_read(store: Store, sought: str) -> Tracker:
    """Connect for reading; a missing database file is not created.

    Args:
        store: Where to look.
        sought: What is looked for, the beginning of the message.

    Raises:
        InputError: There is no such file.
        TrackingError: The store is away or refuses.
    """
    if store.file is not None and not store.file.is_file():
        raise InputError(f"{sought}; there is no MLflow store at {store.shown} (MLFLOW_TRACKING_URI)")
    return connect(store)
