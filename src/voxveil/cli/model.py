"""``voxveil model``: register a model for a team, and fetch one."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxveil.cli.actions import add_action, add_actions

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = "Register models in MLflow (a pointer and a checksum; bytes stay in S3 or DVC), and fetch them."

EPILOG = """A registered version holds bundle.json, SHA256SUMS and pointer.json. The bytes lie where the
pointer says: in S3 (--to uploads them), or in DVC at the checked-out commit, which must be pushed
('git push', 'dvc push'). MLFLOW_TRACKING_URI names the registry. Fetched models lie in VOXVEIL_CACHE,
by default ~/.cache/voxveil; every file is held against its SHA-256 before it is used.

examples:
  voxveil model register models/anon_dp --name anonymizer --alias champion --to s3://voxveil/models
  voxveil model register models/anon_dp --name anonymizer               # bytes in DVC
  voxveil model fetch models:/anonymizer@champion                       # prints the folder
  voxveil anonymize recordings/ private/ --model models:/anonymizer@champion
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil model``."""
    actions = add_actions(parser)
    register = add_action(actions, "register", _register, "make a version of a registered model")
    register.add_argument("folder", type=Path, metavar="DIR", help="model bundle")
    register.add_argument("--name", required=True, metavar="N", help="registered model")
    register.add_argument("--alias", default="", metavar="A", help="move this alias to it, e.g. champion")
    register.add_argument(
        "--to", default="", metavar="s3://BUCKET/PREFIX", help="upload the bytes (default: they are in DVC)"
    )
    fetch = add_action(actions, "fetch", _fetch, "bring a model into the cache and print its folder")
    fetch.add_argument("model", metavar="MODEL", help="s3://BUCKET/PREFIX, models:/NAME@ALIAS or a folder")
    fetch.add_argument("--system", help="which bundle, where there are several")


def _fetch(args: argparse.Namespace) -> int:
    from voxveil.tracking.models.fetching import locate_model

    print(locate_model(args.model, args.system))
    return 0


def _register(args: argparse.Namespace) -> int:
    from voxveil.anonymize.bundle import read_bundle
    from voxveil.runtime.s3 import S3Uri
    from voxveil.tracking.models.registering import register_model
    from voxveil.tracking.models.storing import dvc_address, upload
    from voxveil.tracking.store import resolve_store

    read_bundle(args.folder)
    address = upload(args.folder, S3Uri.parse(args.to, name="--to")) if args.to else dvc_address(args.folder)
    store = resolve_store()
    version = register_model(args.folder, args.name, address, store, args.alias)
    alias = f", alias {args.alias}" if args.alias else ""
    print(f"{args.name} version {version}{alias} at {store.shown}; bytes at {address}")
    return 0
