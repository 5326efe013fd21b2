"""``voxveil params``: compose params.yaml from an overlay."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxveil.config import load_params
from voxveil.config.compose import changes_of, overlay_names, use_overlay

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Compose params.yaml from params/NAME.yaml, or check the one that is there."

EPILOG = """examples:
  voxveil params use quickstart
  voxveil params use librispeech-mini --set prepare.source=/data/LibriSpeech
  voxveil params check
  voxveil params list
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil params``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    use = actions.add_parser("use", help="write params.yaml from params/NAME.yaml")
    use.add_argument("name", metavar="NAME", help="overlay, e.g. quickstart")
    use.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="replace one value by its dotted path; may be given again",
    )
    check = actions.add_parser("check", help="check params.yaml")
    check.add_argument("path", nargs="?", type=Path, default=Path("params.yaml"))
    actions.add_parser("list", help="list the overlays")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "use":
        print(f"{use_overlay(args.name, Path(), changes_of(args.set))}: scale {args.name}")
    elif args.action == "check":
        params = load_params(args.path)
        print(f"{args.path}: valid, scale {params.base.scale}, systems {', '.join(params.systems) or 'none'}")
    else:
        print("\n".join(overlay_names(Path("params"))))
    return 0
