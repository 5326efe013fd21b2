"""Aliases and tags of the versions of a registered model."""

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
    """Return the version with an alias; None if no version has it or the model does not exist.

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
    """Move an alias to a version, away from the one that had it."""
    with connect(store).burst() as client:
        client.set_registered_model_alias(name, alias, version)
