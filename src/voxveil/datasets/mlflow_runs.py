"""MLflow runs and registered models derived from given data, found by the data's hashes in their tags."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.tracking.client import call_or_none, connect
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import Store, resolve_store

__all__ = ["FoundModel", "FoundRun", "Tracked", "delete_found", "find_tracked", "stores_of"]

#: MLflow keeps at most this much of a dataset's digest.
_DIGEST = 36
#: Tags that hold the hash of the speech something was made from.
_TAGS = (f"{PREFIX}data_revision", f"{PREFIX}dataset")


@dataclass(frozen=True)
class FoundRun:
    """One run.

    Attributes:
        id: Its id.
        name: Its name.
        experiment: Name of its experiment.
        deleted: It is marked as deleted; its content is still there until ``mlflow gc``.
    """

    id: str
    name: str
    experiment: str
    deleted: bool = False


@dataclass(frozen=True)
class FoundModel:
    """One version of a registered model.

    Attributes:
        name: Of the registered model.
        version: Its number.
        aliases: Names that people fetch it by.
        address: Where its bytes lie; empty where the version does not say.
    """

    name: str
    version: str
    aliases: tuple[str, ...]
    address: str


@dataclass(frozen=True)
class Tracked:
    """Runs and model versions found in one MLflow store.

    Attributes:
        store: The store.
        runs: Runs, sorted by experiment, name and id.
        models: Versions of registered models, sorted.
    """

    store: Store
    runs: tuple[FoundRun, ...]
    models: tuple[FoundModel, ...]


def stores_of(root: Path) -> list[Store]:
    """Return the stores that runs of a project went to: the one of the environment and its own file.

    A file that is not there is none, and without MLflow there are none.
    """
    if importlib.util.find_spec("mlflow") is None:
        return []
    local = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    found = {store.uri: store for store in (resolve_store(cwd=root), resolve_store(local, cwd=root))}
    return [store for store in found.values() if store.file is None or store.file.is_file()]


def find_tracked(store: Store, hashes: Collection[str]) -> Tracked:
    """Return runs and models of data with one of these hashes, in every experiment, also deleted ones.

    Runs and model versions carry them as the tags ``voxveil.data_revision`` (prepared speech) and
    ``voxveil.dataset`` (a dataset's manifest). A run is also found by the digest of a dataset it
    logged, and as the training that such a run names (tags ``voxveil.training.*``).

    Raises:
        TrackingError: MLflow is away or refuses.
    """
    wanted = sorted(set(hashes) - {""})
    if not wanted:
        return Tracked(store, (), ())
    with connect(store, experiment=False).burst() as client:
        return Tracked(store, tuple(_runs(client, wanted)), tuple(_models(client, wanted)))


def delete_found(tracked: Tracked) -> None:
    """Delete model versions and mark runs as deleted; ``mlflow gc`` removes those for good.

    Raises:
        TrackingError: MLflow is away or refuses; doing it again goes on.
    """
    with connect(tracked.store, experiment=False).burst() as client:
        for model in tracked.models:
            client.delete_model_version(model.name, model.version)
        for run in tracked.runs:
            if not run.deleted:
                client.delete_run(run.id)


def _runs(client: Any, wanted: list[str]) -> list[FoundRun]:
    from mlflow.entities import ViewType

    pages = _pages(lambda token: client.search_experiments(view_type=ViewType.ALL, page_token=token))
    names = {experiment.experiment_id: experiment.name for experiment in pages}
    queries = [f"tags.`{tag}` = '{digest}'" for digest in wanted for tag in _TAGS]
    digests = ", ".join(f"'{digest[:_DIGEST]}'" for digest in wanted)
    runs: dict[str, Any] = {}
    for query in [*queries, f"dataset.digest IN ({digests})"]:

        def search(token: str | None, query: str = query) -> Any:
            return client.search_runs(
                list(names), query, run_view_type=ViewType.ALL, max_results=1000, page_token=token
            )

        runs.update({run.info.run_id: run for run in _pages(search)})
    for run in list(runs.values()):
        for name, value in run.data.tags.items():
            training = call_or_none(client.get_run, value) if name.startswith(f"{PREFIX}training.") else None
            # One that was removed permanently is no longer there.
            if training is not None:
                runs[training.info.run_id] = training
    found = [
        FoundRun(
            run_id,
            run.info.run_name or "",
            names.get(run.info.experiment_id, ""),
            run.info.lifecycle_stage != "active",
        )
        for run_id, run in runs.items()
    ]
    return sorted(found, key=lambda run: (run.experiment, run.name, run.id))


def _models(client: Any, wanted: list[str]) -> list[FoundModel]:
    found = {}
    for query in [f"tags.`{tag}` = '{digest}'" for digest in wanted for tag in _TAGS]:

        def search(token: str | None, query: str = query) -> Any:
            return client.search_model_versions(query, page_token=token)

        for version in _pages(search):
            # Aliases are left out of what a search returns.
            aliases = client.get_model_version(version.name, version.version).aliases
            found[version.name, int(version.version)] = FoundModel(
                version.name,
                str(version.version),
                tuple(sorted(aliases)),
                version.tags.get(f"{PREFIX}address", ""),
            )
    return [found[key] for key in sorted(found)]


def _pages(search: Callable[[str | None], Any]) -> Iterator[Any]:
    token = None
    while True:
        page = search(token)
        yield from page
        token = page.token
        if not token:
            return
