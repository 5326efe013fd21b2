"""Permanent removal of runs that were deleted in MLflow, from database and bucket."""

from __future__ import annotations

import contextlib
import io
import os
import re

from voxveil.runtime.errors import InputError
from voxveil.tracking.client import quiet_mlflow
from voxveil.tracking.servers.settings import ServerSettings, StackError

__all__ = ["collect_deleted"]


_AGE = re.compile(r"(\d+d)?(\d+h)?(\d+m)?(\d+s)?\Z")
_RUN = re.compile(r"[0-9a-f]{32}\Z")


def collect_deleted(
    settings: ServerSettings, address: str, user: str, password: str, *, older_than: str, run_ids: str = ""
) -> int:
    """Run ``mlflow gc`` against the server's own database, artifacts through its proxy.

    Deleted experiments of that age go too.

    Args:
        settings: The server's.
        address: The running server: it is what deletes artifacts.
        user: An administrator.
        password: Of the user.
        older_than: Age since deletion, such as ``30d`` or ``1d12h``.
        run_ids: Only these, separated by commas.

    Returns:
        How many runs were removed.

    Raises:
        InputError: An age or id of another form.
        StackError: The database or the server is away or refuses.
    """
    if not older_than or not _AGE.match(older_than):
        raise InputError(f"--older-than {older_than!r}: must be such as 30d, 12h or 1d12h")
    if run_ids and not all(_RUN.match(run_id) for run_id in run_ids.split(",")):
        raise InputError(f"--run-ids {run_ids!r}: must be ids of runs, separated by commas")
    # In the environment and not in a command, which everybody on the machine may read.
    os.environ.update(
        MLFLOW_TRACKING_USERNAME=user,
        MLFLOW_TRACKING_PASSWORD=password,
        MLFLOW_DISABLE_TELEMETRY="true",
    )
    quiet_mlflow()
    from mlflow.cli import gc

    arguments = ["--backend-store-uri", settings.database, "--tracking-uri", address]
    # MLflow takes an age of nothing for everything.
    arguments += [] if not any(sign in older_than for sign in "123456789") else ["--older-than", older_than]
    arguments += ["--run-ids", run_ids] if run_ids else []
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            gc.main(arguments, standalone_mode=False)
    except Exception as error:  # SQLAlchemy, requests, MLflow and click have no common base
        text = " ".join(str(error).replace(settings.database, "the database").split())[:200]
        raise StackError(f"mlflow gc at {address}: {text or type(error).__name__}") from None
    return said.getvalue().count("permanently deleted")
