"""Settings that the MLflow server requires; there are no default passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from voxveil.runtime.errors import InputError, VoxveilError
from voxveil.runtime.s3 import S3Uri

__all__ = ["AUTH_SCHEMA", "ServerSettings", "StackError"]

#: Schema of the users and permissions, in the same database, so that one backup holds both.
AUTH_SCHEMA = "auth"
_SHORTEST_PASSWORD, _SHORTEST_KEY = 12, 32
#: Words of passwords that stand in manuals. A password whose letters are nothing else is refused.
_KNOWN = re.compile(r"(password|passwd|changeme|admin|secret|example|mlflow|voxveil|test|default)*\Z")
#: Hosts that are always right: the machine itself, for probes.
_LOCAL_HOSTS = ("localhost:*", "127.0.0.1:*")


class StackError(VoxveilError):
    """A server is misconfigured, does not start, or rejects a request."""

    exit_code = 1


@dataclass(frozen=True)
class ServerSettings:
    """A checked configuration.

    Attributes:
        database: PostgreSQL as ``postgresql+psycopg2://USER:PASSWORD@HOST:PORT/NAME``.
        artifacts: ``s3://BUCKET/PREFIX``.
        admin: Name of the first administrator.
        admin_password: Its first password; it is changed in MLflow, not here.
        secret_key: Signs MLflow's forms; the same for every replica.
        hosts: Host names under which the server may be called, ``NAME`` or ``NAME:PORT``.
        bind: Address to listen on.
        port: Port to listen on.
        workers: Processes that serve.
    """

    database: str = field(repr=False)
    artifacts: str
    admin: str
    admin_password: str = field(repr=False)
    secret_key: str = field(repr=False)
    hosts: tuple[str, ...]
    bind: str = "0.0.0.0"
    port: int = 5000
    workers: int = 2

    def __post_init__(self) -> None:
        """Validate the settings.

        Raises:
            StackError: Naming the variable.
        """
        try:
            S3Uri.parse(self.artifacts, name="VOXVEIL_ARTIFACTS", whole_bucket=True)
        except InputError as error:
            raise StackError(str(error)) from None
        if len(self.admin_password) < _SHORTEST_PASSWORD:
            raise StackError(
                f"MLFLOW_AUTH_ADMIN_PASSWORD: must have {_SHORTEST_PASSWORD} characters or more,"
                f" got {len(self.admin_password)}; there is no default password"
            )
        letters = re.sub("[^a-z]", "", self.admin_password.lower())
        if _KNOWN.match(letters) or self.admin_password.lower() == self.admin.lower():
            raise StackError(
                "MLFLOW_AUTH_ADMIN_PASSWORD: is a password that manuals show; choose a random one"
            )
        if len(self.secret_key) < _SHORTEST_KEY:
            raise StackError(
                f"MLFLOW_FLASK_SERVER_SECRET_KEY: must have {_SHORTEST_KEY} characters or more,"
                f" got {len(self.secret_key)}"
            )
        if not self.hosts or any(host.strip("*:") == "" for host in self.hosts):
            raise StackError(
                "MLFLOW_SERVER_ALLOWED_HOSTS: must name the hosts people call, such as"
                " mlflow.example.org,mlflow:5000; '*' would let any web page through"
            )

    @staticmethod
    def from_environment(environ: Mapping[str, str]) -> ServerSettings:
        """Read the environment; each secret may stand in a file instead, named by ``NAME_FILE``.

        Raises:
            StackError: A variable is missing or cannot be used.
        """
        user, host = setting(environ, "VOXVEIL_DB_USER", "mlflow"), setting(environ, "VOXVEIL_DB_HOST")
        password = quote(setting(environ, "VOXVEIL_DB_PASSWORD"), safe="")
        port = whole(environ, "VOXVEIL_DB_PORT", 5432)
        name = setting(environ, "VOXVEIL_DB_NAME", "mlflow")
        for needed in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            setting(environ, needed)
        return ServerSettings(
            database=f"postgresql+psycopg2://{quote(user, safe='')}:{password}@{host}:{port}/{name}",
            artifacts=setting(environ, "VOXVEIL_ARTIFACTS"),
            admin=setting(environ, "MLFLOW_AUTH_ADMIN_USERNAME", "admin"),
            admin_password=setting(environ, "MLFLOW_AUTH_ADMIN_PASSWORD"),
            secret_key=setting(environ, "MLFLOW_FLASK_SERVER_SECRET_KEY"),
            hosts=tuple(filter(None, setting(environ, "MLFLOW_SERVER_ALLOWED_HOSTS").split(","))),
            bind=setting(environ, "VOXVEIL_BIND", "0.0.0.0"),
            port=whole(environ, "VOXVEIL_PORT", 5000),
            workers=whole(environ, "VOXVEIL_WORKERS", 2),
        )

    @property
    def auth_database(self) -> str:
        """The same database with the schema of users in front."""
        return f"{self.database}?options=-csearch_path%3D{AUTH_SCHEMA}"

    @property
    def allowed_hosts(self) -> str:
        """Hosts for MLflow, whose own list replaces its default."""
        return ",".join(dict.fromkeys((*self.hosts, *_LOCAL_HOSTS)))

    def auth_ini(self) -> str:
        """Return MLflow's configuration of users.

        A team writes into one experiment, so everybody may; deleting it is left to who made it.
        """
        # configparser takes % for the begin of a reference.
        return (
            "[mlflow]\n"
            "default_permission = EDIT\n"
            f"database_uri = {self.auth_database.replace('%', '%%')}\n"
            f"admin_username = {self.admin}\n"
            # Each check costs a tenth of a second of hashing; a new password holds everywhere after this.
            "auth_cache_ttl_seconds = 30\n"
            "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        )


def setting(environ: Mapping[str, str], name: str, default: str = "") -> str:
    """Return a variable, or the content of the file that ``NAME_FILE`` names.

    Raises:
        StackError: There is neither and no default, or the file cannot be read.
    """
    file = environ.get(f"{name}_FILE")
    if file:
        try:
            value = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise StackError(f"{name}_FILE: {file} cannot be read ({error.strerror})") from None
    else:
        value = environ.get(name, "") or default
    if not value:
        raise StackError(f"{name} is not set (or {name}_FILE); the server does not start without it")
    return value


def whole(environ: Mapping[str, str], name: str, default: int) -> int:
    """Return a variable that is a whole number of at least 1.

    Raises:
        StackError: It is not.
    """
    text = environ.get(name, "") or str(default)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise StackError(f"{name} must be a whole number of at least 1, got {text!r}")
    return int(text)
