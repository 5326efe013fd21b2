"""``voxveil model``: register a model for a team, fetch one, and import a pretrained one."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxveil.cli.actions import add_action, add_actions
from voxveil.pretrained.architectures import ARCHITECTURES
from voxveil.runtime.errors import InputError

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = "Register and fetch models (MLflow holds a pointer and a checksum), and import pretrained ones."

EPILOG = """A registered version holds bundle.json or model.json, SHA256SUMS and pointer.json. The bytes
lie where the pointer says: in S3 (--to uploads them), or in DVC at the checked-out commit, which must be
pushed ('git push', 'dvc push'). MLFLOW_TRACKING_URI names the registry. Fetched models lie in VOXVEIL_CACHE,
by default ~/.cache/voxveil; every file is held against its SHA-256 before it is used.

examples:
  voxveil model register models/anon_dp --name anonymizer --alias champion --to s3://voxveil/models
  voxveil model register models/anon_dp --name anonymizer               # bytes in DVC
  voxveil model fetch models:/anonymizer@champion                       # prints the folder
  voxveil anonymize recordings/ private/ --model models:/anonymizer@champion
  voxveil model import hub:Systran/faster-whisper-base@COMMIT --out whisper --architecture faster_whisper
  voxveil model show whisper                                            # checks every digest
  voxveil model register whisper --name whisper --alias judge --to s3://voxveil/models
  voxveil params set transcribe.recognizer=models:/whisper@judge
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil model``."""
    actions = add_actions(parser)
    register = add_action(actions, "register", _register, "make a version of a registered model")
    register.add_argument("folder", type=Path, metavar="DIR", help="model bundle or imported model")
    register.add_argument("--name", required=True, metavar="N", help="registered model")
    register.add_argument("--alias", default="", metavar="A", help="move this alias to it, e.g. champion")
    register.add_argument(
        "--to", default="", metavar="s3://BUCKET/PREFIX", help="upload the bytes (default: they are in DVC)"
    )
    fetch = add_action(actions, "fetch", _fetch, "bring a model into the cache and print its folder")
    fetch.add_argument("model", metavar="MODEL", help="s3://BUCKET/PREFIX, models:/NAME@ALIAS or a folder")
    fetch.add_argument("--system", help="which bundle, where there are several")
    imported = add_action(
        actions,
        "import",
        _import,
        "convert a pretrained model once into a folder with licence, source and digests",
    )
    imported.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a folder, package:MODULE/SUBFOLDER of an installed package, or hub:OWNER/NAME@COMMIT; several"
        " are read as one folder",
    )
    imported.add_argument(
        "--architecture", required=True, metavar="A", help=f"one of {', '.join(ARCHITECTURES)}"
    )
    imported.add_argument("--out", required=True, type=Path, metavar="DIR", help="the new folder")
    imported.add_argument(
        "--licence", default="", metavar="L", help="of the weights, where the source states none"
    )
    imported.add_argument(
        "--sha256",
        action="append",
        default=[],
        metavar="FILE=HEX",
        help="digest that an original file must have; may be repeated",
    )
    shown = add_action(actions, "show", _show, "check an imported model and print what it is")
    shown.add_argument("model", metavar="MODEL", help="folder of an imported model, s3:// or models:/")


def _fetch(args: argparse.Namespace) -> int:
    from voxveil.tracking.models.contents import locate_model

    print(locate_model(args.model, args.system, imported=True))
    return 0


def _register(args: argparse.Namespace) -> int:
    from voxveil.runtime.s3 import S3Uri
    from voxveil.tracking.models.contents import read_contents
    from voxveil.tracking.models.registering import register_model
    from voxveil.tracking.models.storing import dvc_address, upload
    from voxveil.tracking.store import resolve_store

    read_contents(args.folder)
    address = upload(args.folder, S3Uri.parse(args.to, name="--to")) if args.to else dvc_address(args.folder)
    store = resolve_store()
    version = register_model(args.folder, args.name, address, store, args.alias)
    alias = f", alias {args.alias}" if args.alias else ""
    print(f"{args.name} version {version}{alias} at {store.shown}; bytes at {address}")
    return 0


def _import(args: argparse.Namespace) -> int:
    from voxveil.pretrained.importing import import_model

    if args.out.exists():
        raise InputError(f"--out {args.out}: exists already; name a new folder")
    digests = _digests(args.sha256)
    import_model(args.sources, args.architecture, args.out, licence=args.licence, digests=digests)
    args.model = str(args.out)
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    from voxveil.tracking.models.fetching import locate_pretrained

    model = locate_pretrained(args.model, "", "MODEL")
    facts = {"kind": model.kind, **model.facts(), "sample rate": f"{model.sample_rate} Hz"}
    for name, value in facts.items():
        print(f"{name}: {value}")
    for name, digest in model.origin.items():
        print(f"from {name}: SHA-256 {digest}")
    return 0


def _digests(options: list[str]) -> dict[str, str]:
    """Return the digests of ``--sha256 FILE=HEX`` options by file name."""
    found = {}
    for text in options:
        name, _, digest = text.partition("=")
        if not name or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise InputError(f"--sha256 {text}: must be FILE=HEX with 64 lower-case hexadecimal digits")
        found[name] = digest
    return found
