"""The tracking store, resolved from the environment without importing MLflow.

``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME`` win. The default is a SQLite file
``mlflow.db`` with artifacts in ``mlartifacts``, both in ``$DVC_ROOT`` so that an experiment
in a throw-away copy of the repository is not lost with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from voxveil.runtime.errors import one_line
from voxveil.runtime.project import project_root

__all__ = ["EXPERIMENT", "Store", "resolve_store", "tracking_enabled", "warn", "without_credentials"]

#: Name of the MLflow experiment unless MLFLOW_EXPERIMENT_NAME says otherwise.
EXPERIMENT = "voxveil"


@dataclass(frozen=True)
class Store:
    """A tracking store.

    Attributes:
        uri: MLflow tracking URI.
        experiment: Name of the experiment.
        artifacts: Artifact folder of a new experiment; None leaves it to the server.
        file: The database of a SQLite store; None for a server.
    """

    uri: str
    experiment: str
    artifacts: Path | None
    file: Path | None

    @property
    def lock(self) -> Path | None:
        """File whose lock serializes writers of a SQLite store; None for a server."""
        return None if self.file is None else self.file.with_name(f"{self.file.name}.lock")

    @property
    def is_server(self) -> bool:
        """Whether it is a server with MLflow's pages."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def shown(self) -> str:
        """The URI without credentials, for messages."""
        return without_credentials(self.uri)

    def redact(self, text: str) -> str:
        """Return ``text`` as one line of at most 200 characters without this store's credentials."""
        line = text.replace(self.uri, self.shown)
        credentials = urlsplit(self.uri).netloc.rpartition("@")[0]
        return one_line(line.replace(credentials, "***") if credentials else line, 200)


def tracking_enabled(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether runs are tracked; ``VOXVEIL_TRACKING=off`` switches it off."""
    value = (os.environ if environ is None else environ).get("VOXVEIL_TRACKING", "on")
    return value.strip().lower() not in ("off", "0", "false", "no")


def resolve_store(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Store:
    """Return the store that the environment names, else the default one.

    Args:
        environ: Environment variables; the process's unless given.
        cwd: Where to look for the project from; the current folder unless given.
    """
    env = os.environ if environ is None else environ
    experiment = env.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
    uri = env.get("MLFLOW_TRACKING_URI")
    if uri:
        file = _sqlite_file(uri)
        # MLflow would put the artifacts of a database file into whatever folder is current.
        return Store(uri, experiment, file.parent / "mlartifacts" if file else None, file)
    root = project_root(env, cwd)
    uri = f"sqlite:///{root / 'mlflow.db'}"
    return Store(uri, experiment, root / "mlartifacts", _sqlite_file(uri))


def warn(text: str) -> None:
    """Print one warning line to standard error."""
    print(f"voxveil: warning: {text}", file=sys.stderr, flush=True)


def _sqlite_file(uri: str) -> Path | None:
    scheme, _, path = uri.partition(":///")
    if not scheme.startswith("sqlite") or not path or path == ":memory:":
        return None
    return Path(path.partition("?")[0]).absolute()


def without_credentials(uri: str) -> str:
    """Return a URI without the user and password that it may carry."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
