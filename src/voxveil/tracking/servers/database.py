"""Creation and upgrade of MLflow's database schema, by one replica at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from voxveil.tracking.client import quiet_mlflow
from voxveil.tracking.servers.settings import AUTH_SCHEMA, ServerSettings, StackError

__all__ = ["prepare_database"]

#: Number of the PostgreSQL advisory lock; any constant that nobody else uses.
_LOCK = 5_078_912_331


def prepare_database(settings: ServerSettings, *, upgrade: bool = False, patience: float = 60.0) -> str:
    """Create or upgrade the schema for this MLflow; replicas that start at once wait for each other.

    An empty database is set up. An older one is upgraded only if ``upgrade``, because a backup must come
    first; a newer one is refused.

    Args:
        settings: The server's.
        upgrade: A backup was made.
        patience: Seconds to wait for a database that is still starting.

    Returns:
        ``made``, ``upgraded`` or ``current``.

    Raises:
        StackError: The database is away, older without ``upgrade``, or newer.
    """
    quiet_mlflow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow.server.auth.db import utils as auth
    from mlflow.db import upgrade as mlflow_upgrade
    from mlflow.store.db import utils as store
    from sqlalchemy import create_engine, text

    quiet_mlflow()
    with _locked(settings, patience) as connection:
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {AUTH_SCHEMA}"))
        connection.commit()
        engine, users = create_engine(settings.database), create_engine(settings.auth_database)
        try:
            configs = {
                "tracking": store._get_alembic_config(settings.database),
                "auth": auth._get_alembic_config(settings.auth_database),
            }
            found = {"tracking": store._get_schema_version(engine), "auth": _auth_version(users)}
            heads = {"tracking": store._get_latest_schema_revision(), "auth": _head(configs["auth"])}
            empty = store._is_empty_database(engine)
            behind = [part for part, version in found.items() if version not in (None, heads[part])]
            if behind and not upgrade:
                raise StackError(_outdated(behind, found, heads))
            if not empty and found["tracking"] is None:
                raise StackError(
                    "the database holds tables that are not MLflow's; give MLflow a database of its own"
                )
            _require_known({part: (configs[part], found[part]) for part in behind})
            if empty or found["tracking"] != heads["tracking"]:
                mlflow_upgrade.callback(settings.database)
            if found["auth"] != heads["auth"]:
                auth.migrate(users, "head")
        finally:
            engine.dispose()
            users.dispose()
    if empty:
        return "made"
    return "upgraded" if behind else "current"


@contextmanager
def _locked(settings: ServerSettings, patience: float) -> Iterator[Any]:
    """Hold the advisory lock; the session that took it must stay open."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import OperationalError

    engine = create_engine(settings.database)
    until = time.monotonic() + patience
    while True:
        try:
            connection = engine.connect()
            break
        except OperationalError as error:
            refused = "authentication failed" in str(error)
            if refused or time.monotonic() > until:
                reason = " ".join(str(error.orig).split())
                raise StackError(f"PostgreSQL at {engine.url.host}:{engine.url.port}: {reason}") from None
            time.sleep(1)
    try:
        connection.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
        connection.commit()
        yield connection
        connection.rollback()
        connection.execute(text(f"SELECT pg_advisory_unlock({_LOCK})"))
        connection.commit()
    finally:
        connection.close()
        engine.dispose()


def _auth_version(engine: Any) -> str | None:
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "alembic_version_auth"})
        version: str | None = context.get_current_revision()
    return version


def _head(config: Any) -> str | None:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(config).get_current_head()


def _require_known(behind: Mapping[str, tuple[Any, str | None]]) -> None:
    """Raise an error for a schema revision unknown to this MLflow, which is older than the database.

    Args:
        behind: Alembic's configuration and the revision of each part that is not this MLflow's.
    """
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    for part, (config, revision) in behind.items():
        try:
            ScriptDirectory.from_config(config).get_revision(str(revision))
        except CommandError:
            raise StackError(
                f"the database's {part} schema is of revision {revision}, which this MLflow does not know:"
                " it is newer; start the newer server again, or restore the backup"
            ) from None


def _outdated(behind: Sequence[str], found: Mapping[str, str | None], heads: Mapping[str, str | None]) -> str:
    shown = ", ".join(f"{part} {found[part]}, needs {heads[part]}" for part in behind)
    return (
        f"the database's schema is not this server's ({shown}). Make a backup (pg_dump), then run once:"
        " voxveil stack migrate --upgrade"
    )
