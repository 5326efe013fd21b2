"""Connection to an MLflow store: waits for other processes, gives up early on a dead server.

Only ``MlflowClient`` is used, never the fluent interface: that one adopts the run named by
``MLFLOW_RUN_ID`` and ends it. A run named there is a parent tag here and nothing else.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import file_lock
from voxveil.runtime.errors import InputError, VoxveilError, import_extra
from voxveil.runtime.git import ask_git
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import Store

__all__ = [
    "Tracker",
    "TrackingError",
    "common_tags",
    "connect",
    "connect_to_read",
    "call_or_none",
    "git_commit",
]

#: Seconds and tries before a server counts as away; the user's own settings win.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "15", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}

#: What MLflow would print by itself: two lines for each run, a bar for each artifact.
_QUIET = {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}

#: Opens the experiment in the view of trained models, not of language-model traces.
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}


#: What a schema migration says of a database in which an earlier one was killed.
_HALF_MADE = re.compile(
    r"(table|index) \S+ already exists|duplicate column name|no such table", re.IGNORECASE
)


class TrackingError(VoxveilError):
    """The tracking store cannot be reached or rejects a request. Results are not affected."""

    exit_code = 1


class Tracker:
    """One experiment of one store.

    Attributes:
        client: MLflow's own client.
        experiment_id: The experiment's id, empty for a connection to the store as a whole.
        store: Where it lives.
    """

    def __init__(self, client: Any, experiment_id: str, store: Store) -> None:
        self.client = client
        self.experiment_id = experiment_id
        self.store = store

    @contextmanager
    def burst(self) -> Iterator[Any]:
        """Yield the client for a short burst of writes; every fault becomes a :class:`TrackingError`."""
        with _faults(self.store), _lock(self.store):
            yield self.client

    def find(self, **tags: str) -> list[Any]:
        """Return the experiment's live runs whose tags (without prefix) have these values, newest first."""
        query = " and ".join(f"tags.`{PREFIX}{name}` = '{_quoted(value)}'" for name, value in tags.items())
        return self.search(query)

    def search(self, query: str, limit: int = 100) -> list[Any]:
        """Return at most ``limit`` live runs of the experiment that fit a query of MLflow, newest first."""
        return list(self.client.search_runs([self.experiment_id], query, max_results=limit))


def connect(store: Store, *, experiment: bool = True) -> Tracker:
    """Connect to the store, initialize it if new, and find or create the experiment.

    Eight processes may do so at once: a file lock serializes first contact with SQLite.

    Raises:
        MissingExtraError: MLflow is not installed.
        TrackingError: The store is away or refuses.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["DO_NOT_TRACK"] = "true"
    for name, value in {**_PATIENCE, **_QUIET}.items():
        os.environ.setdefault(name, value)
    quiet_mlflow()
    mlflow_client = import_extra("mlflow.tracking", "mlflow").MlflowClient
    quiet_mlflow()
    with _faults(store), _lock(store):
        if store.file is not None and not store.file.exists():
            _make_database(store.file)
        client = mlflow_client(tracking_uri=store.uri)
        return Tracker(client, _experiment(client, store) if experiment else "", store)


def call_or_none(
    call: Callable[..., Any], *arguments: str, codes: Sequence[str] = ("RESOURCE_DOES_NOT_EXIST",)
) -> Any | None:
    """Return what a call of MLflow's client returns, None where it fails with one of these error codes.

    Args:
        call: Method of the client.
        arguments: Its arguments.
        codes: MLflow's error codes; by default the one for an object that does not exist.
    """
    from mlflow.exceptions import MlflowException

    try:
        return call(*arguments)
    except MlflowException as error:
        if error.error_code not in codes:
            raise
        return None


def quiet_mlflow() -> None:
    """Silence Alembic and MLflow, which narrate the set-up of a database; an import of MLflow undoes it."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _make_database(path: Path) -> None:
    """Create an empty SQLite database atomically, as MLflow cannot resume an interrupted creation."""
    from mlflow.tracking import MlflowClient

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    MlflowClient(tracking_uri=f"sqlite:///{partial}").search_experiments(max_results=1)
    partial.replace(path)


def common_tags(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the tags of every voxveil run: code version, DVC experiment, Kubeflow run, parent run."""
    env = os.environ if environ is None else environ
    tags = {
        "mlflow.source.name": "voxveil",
        "mlflow.source.type": "LOCAL",
        "mlflow.parentRunId": env.get("MLFLOW_RUN_ID", ""),
        f"{PREFIX}exp": env.get("DVC_EXP_NAME", ""),
        f"{PREFIX}baseline": env.get("DVC_EXP_BASELINE_REV", ""),
        f"{PREFIX}kfp_run": env.get("KFP_RUN_ID", ""),
    }
    commit = git_commit()
    if commit:
        tags["mlflow.source.git.commit"] = commit
    return {name: value for name, value in tags.items() if value}


def git_commit(folder: Path | None = None) -> str:
    """Return the checked-out commit, empty outside a Git checkout."""
    return ask_git(folder or Path(), "rev-parse", "HEAD").line


def _experiment(client: Any, store: Store) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(store.experiment)
    if found is None:
        location = store.artifacts.as_uri() if store.artifacts else None
        try:
            return str(client.create_experiment(store.experiment, location, tags=_EXPERIMENT_TAGS))
        except MlflowException:
            # Another machine may have made it since.
            found = client.get_experiment_by_name(store.experiment)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise TrackingError(
            f"MLflow experiment {store.experiment!r} at {store.shown} is deleted; restore it or set"
            " MLFLOW_EXPERIMENT_NAME"
        )
    return str(found.experiment_id)


def _lock(store: Store) -> AbstractContextManager[None]:
    return nullcontext() if store.lock is None else file_lock(store.lock)


@contextmanager
def _faults(store: Store) -> Iterator[None]:
    try:
        yield
    except VoxveilError:
        raise
    except Exception as error:  # requests, SQLAlchemy, sqlite3, MLflow and OS errors: all mean "away"
        if store.file is not None and _HALF_MADE.search(str(error)):
            raise TrackingError(
                f"MLflow at {store.shown}: the database is half made or half upgraded; remove {store.file} if"
                " it holds no runs, else take its backup; 'voxveil track sync' then sends finished results"
            ) from error
        detail = store.redact(str(error)) or type(error).__name__
        raise TrackingError(f"MLflow at {store.shown}: {detail}") from error


def _quoted(value: str) -> str:
    if "'" in value:
        raise TrackingError(f"cannot search MLflow for {value!r}: it holds a quote")
    return value


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
