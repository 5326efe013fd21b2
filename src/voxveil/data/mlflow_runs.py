"""Runs of MLflow that were made from given data, found by the hashes they carry."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.data.errors import DataError
from voxveil.tracking.names import PREFIX
from voxveil.tracking.store import Store, resolve_store

__all__ = ["FoundRun", "delete_runs", "found_runs", "store_of"]

_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "15", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
#: MLflow keeps at most this much of a dataset's digest.
_DIGEST = 36


@dataclass(frozen=True)
class FoundRun:
    """One run.

    Attributes:
        id: Its id.
        name: Its name.
        experiment: Name of its experiment.
    """

    id: str
    name: str
    experiment: str


def store_of(root: Path) -> Store | None:
    """Return the tracking store of a project; None where there is none yet, or MLflow is not installed."""
    store = resolve_store(cwd=root)
    if store.lock is not None and not Path(str(store.lock).removesuffix(".lock")).is_file():
        return None
    return store if importlib.util.find_spec("mlflow") else None


def found_runs(store: Store, hashes: Collection[str]) -> list[FoundRun]:
    """Return the live runs of every experiment whose data have one of these hashes, sorted by name and id.

    A run is found by its tag ``voxveil.data_revision``, by the digest of a dataset it logged, or as the
    training run that such a run names (tags ``voxveil.training.*``).

    Raises:
        DataError: MLflow is away or refuses.
    """
    wanted = sorted(set(hashes))
    if not wanted:
        return []
    try:
        client = _client(store)
        names = {each.experiment_id: each.name for each in client.search_experiments()}
        queries = [f"tags.`{PREFIX}data_revision` = '{each}'" for each in wanted]
        digests = ", ".join(f"'{each[:_DIGEST]}'" for each in wanted)
        runs: dict[str, Any] = {}
        for query in [*queries, f"dataset.digest IN ({digests})"]:
            runs.update({run.info.run_id: run for run in _pages(client, list(names), query)})
        for run in list(runs.values()):
            for name, value in run.data.tags.items():
                if name.startswith(f"{PREFIX}training.") and value not in runs:
                    runs[value] = client.get_run(value)
        found = [
            FoundRun(run_id, run.info.run_name or "", names.get(run.info.experiment_id, ""))
            for run_id, run in runs.items()
            if run.info.lifecycle_stage == "active"
        ]
    except Exception as error:  # requests, SQLAlchemy, MLflow and OS errors: all mean "away"
        raise DataError(
            f"MLflow at {store.shown}: {store.redact(str(error)) or type(error).__name__}"
        ) from None
    return sorted(found, key=lambda run: (run.experiment, run.name, run.id))


def delete_runs(store: Store, runs: Collection[FoundRun]) -> None:
    """Mark runs as deleted; ``mlflow gc`` removes them for good.

    Raises:
        DataError: MLflow is away or refuses.
    """
    try:
        client = _client(store)
        for run in runs:
            client.delete_run(run.id)
    except Exception as error:
        raise DataError(
            f"MLflow at {store.shown}: {store.redact(str(error)) or type(error).__name__}"
        ) from None


def _pages(client: Any, experiments: list[str], query: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs(experiments, query, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _client(store: Store) -> Any:
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    from mlflow.tracking import MlflowClient

    # Alembic and MLflow narrate the opening of a database.
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return MlflowClient(tracking_uri=store.uri)
