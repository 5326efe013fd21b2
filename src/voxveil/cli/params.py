"""``voxveil params``: compose, check, change, explain and upgrade params.yaml."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxveil.config import load_params
from voxveil.config.change import changed_text
from voxveil.config.compose import changes_of, overlay_names, use_overlay
from voxveil.config.explain import explanation
from voxveil.config.load import read_mapping
from voxveil.config.upgrade import backup, difference, upgraded_text
from voxveil.runtime.atomic import write_text

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Compose params.yaml from params/NAME.yaml, or check or upgrade the one that is there."

EPILOG = """examples:
  voxveil params use quickstart
  voxveil params use librispeech-mini --set prepare.source=/data/LibriSpeech
  voxveil params check
  voxveil params upgrade            # a file of an older version: keeps your values, adds what is new
  voxveil params set train_pitch.steps=500 report.title=mine
  voxveil params explain train_pitch.steps
  voxveil params explain            # every knob: value now, where it comes from, default, meaning
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
    use.add_argument("--force", action="store_true", help="replace a params.yaml that was edited")
    upgrade = actions.add_parser("upgrade", help="bring a params.yaml of an older version up to date")
    upgrade.add_argument("path", nargs="?", type=Path, default=Path("params.yaml"))
    upgrade.add_argument("--check", action="store_true", help="show the difference only; 1 if there is one")
    check = actions.add_parser("check", help="check params.yaml")
    check.add_argument("path", nargs="?", type=Path, default=Path("params.yaml"))
    change = actions.add_parser("set", help="change or add values of params.yaml in place")
    change.add_argument("changes", nargs="+", metavar="KEY=VALUE", help="dotted path and value")
    explain = actions.add_parser("explain", help="list knobs: value now, its origin, default and meaning")
    explain.add_argument(
        "key",
        nargs="?",
        default="",
        metavar="KEY",
        help="dotted path of a section or a knob; none: all knobs",
    )
    for one in (change, explain):
        one.add_argument("--file", type=Path, default=Path("params.yaml"), help="default: params.yaml")
    actions.add_parser("list", help="list the overlays")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "use":
        print(f"{use_overlay(args.name, Path(), changes_of(args.set), force=args.force)}: scale {args.name}")
    elif args.action == "upgrade":
        return _upgrade(args.path, args.check)
    elif args.action == "set":
        text = changed_text(args.file, changes_of(args.changes))
        write_text(args.file, text)
        print(f"{args.file}: set {', '.join(args.changes)}")
    elif args.action == "explain":
        content = read_mapping(args.file) if args.file.is_file() else {}
        print(explanation(args.key, content, args.file.name))
    elif args.action == "check":
        params = load_params(args.path)
        print(f"{args.path}: valid, scale {params.base.scale}, systems {', '.join(params.systems) or 'none'}")
    else:
        print("\n".join(overlay_names(Path("params"))))
    return 0


def _upgrade(path: Path, check: bool) -> int:
    """Migrate a params file after a backup, or only show what would change."""
    text = upgraded_text(path)
    changes = difference(path, text)
    if not changes:
        print(f"{path}: is of this version; nothing to do")
        return 0
    print(changes, end="")
    if check:
        print(f"{path}: not changed; 'voxveil params upgrade' would write this")
        return 1
    kept = backup(path)
    write_text(path, text)
    print(f"{path}: upgraded, your values kept; the file as it was: {kept}")
    return 0
