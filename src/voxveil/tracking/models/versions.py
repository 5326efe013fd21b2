"""Versions of a registered model: who has an alias, tags of ours, and moving an alias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from voxveil.tracking.client import connect
from voxveil.tracking.mlflow_names import PREFIX
from voxveil.tracking.store import Store

__all__ = ["Version", "find_alias", "move_alias", "tag_version"]


@dataclass(frozen=True)
class Version:
    """A version of a registered model.

    Attributes:
        number: As MLflow counts them.
        tags: Tags of ours, without their prefix.
    """

    number: str
    tags: Mapping[str, str]


def find_alias(name: str, alias: str, store: Store) -> Version | None:
    """Return the version that has an alias; None where nobody has it or there is no such model.

    Raises:
        TrackingError: The store is away or refuses; that is not "nobody".
    """
    tracker = connect(store)
    from mlflow.exceptions import MlflowException

    with tracker.burst() as client:
        try:
            model = client.get_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        if alias not in model.aliases:
            return None
        version = client.get_model_version_by_alias(name, alias)
    tags = {key.removeprefix(PREFIX): value for key, value in version.tags.items() if key.startswith(PREFIX)}
    return Version(str(version.version), tags)


def tag_version(name: str, version: str, tags: Mapping[str, str], store: Store) -> None:
    """Set tags (without prefix) of a version; empty values are left out."""
    with connect(store).burst() as client:
        for key, value in tags.items():
            if value:
                client.set_model_version_tag(name, version, f"{PREFIX}{key}", value)


def move_alias(name: str, alias: str, version: str, store: Store) -> None:
    """Give an alias to a version; whoever had it has it no more."""
    with connect(store).burst() as client:
        client.set_registered_model_alias(name, alias, version)
