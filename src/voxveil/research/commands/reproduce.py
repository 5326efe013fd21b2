"""``voxveil reproduce``: a table or figure of the papers, published and measured side by side."""

from __future__ import annotations

import argparse
import importlib.util
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.runtime.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voxveil.research.papers.catalogue import Item
    from voxveil.research.papers.result import Options

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Reproduce a table or figure of the papers: published and measured values side by side, on a page."

EPILOG = """examples:
  voxveil reproduce list
  voxveil reproduce wcd-table2 --out table2/                # computed at once
  voxveil reproduce wcd-table3 --out table3/                # of the finished chain in this checkout
  voxveil reproduce wcd-table3 --out table3/ --run --set prepare.source=/data/LibriSpeech
  voxveil reproduce wcd-table3 --out table3/ --scores vpc2024/      # B3/scores.txt B3/trials.txt, B4/...

DIR gets index.html, results.json (every number with its source) and figures/. What a table needs and is not
there is named in one line with the commands that make it; --run makes it by DVC and can be run again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil reproduce``."""
    parser.add_argument("name", metavar="NAME", help="an item, or list")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for page, figures and numbers")
    given = parser.add_argument_group("what it is made of")
    given.add_argument(
        "--project", type=Path, default=Path(), metavar="DIR", help="checkout with a finished chain (.)"
    )
    given.add_argument(
        "--features",
        type=Path,
        metavar="DIR",
        help="folder of a finished 'voxveil probe run', or what the pipeline probe_features gathered",
    )
    given.add_argument(
        "--scores", type=Path, metavar="DIR", help="somebody else's score files, one folder per system"
    )
    given.add_argument("--system", default="", metavar="NAME", help="of a figure that shows one (the last)")
    how = parser.add_argument_group("how")
    how.add_argument("--size", choices=("mini", "full"), default="mini", help="which overlay (%(default)s)")
    how.add_argument("--run", dest="make", action="store_true", help="make what is missing, by DVC; resumes")
    how.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="with --run: replace a parameter"
    )
    how.add_argument(
        "--replicates", type=int, default=200, metavar="N", help="behind intervals of --scores (200)"
    )
    how.add_argument("--seed", type=int, default=0, help="of simulations and those intervals (0)")


def run(args: argparse.Namespace) -> int:
    """List the items, or make one."""
    from voxveil.research.papers.catalogue import ITEMS, item_named

    if args.name == "list":
        print("\n".join(_listed(item) for item in ITEMS.values()))
        return 0
    item = item_named(args.name)
    if args.out is None:
        raise InputError(f"reproduce {item.name}: --out DIR says where page and numbers go")
    _check_used(item, args)
    if args.replicates < 0:
        raise InputError(f"--replicates is {args.replicates}; it must be 0 or more")
    if args.set and not args.make:
        raise InputError("--set changes what --run makes; it needs --run")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plots")
    _check_out(args.out)
    if args.make:
        _make_inputs(item, args)
    return _make(item, args)


def _check_used(item: Item, args: argparse.Namespace) -> None:
    """Refuse an option that this item does not take: its page would look as if it had."""
    from voxveil.research.papers.catalogue import ITEMS

    takes: dict[str, tuple[bool, Callable[[Item], bool]]] = {
        "--features": (args.features is not None, lambda each: each.needs == "features"),
        "--scores": (args.scores is not None, lambda each: each.given),
        "--system": (bool(args.system), lambda each: each.scores),
    }
    for option, (set_, takes_it) in takes.items():
        if set_ and not takes_it(item):
            others = ", ".join(name for name, each in ITEMS.items() if takes_it(each))
            raise InputError(f"reproduce {item.name}: takes no {option}; it is for {others}")


def _check_out(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier page: it would be replaced as a whole."""
    from voxveil.runtime.atomic import read_json
    from voxveil.runtime.done import DONE

    if Path.cwd().is_relative_to(out.resolve()):
        raise InputError(
            f"--out {out}: is the folder you are in, or above it, and would be replaced; name another"
        )
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    done = read_json(out / DONE) if (out / DONE).is_file() else None
    if not isinstance(done, dict) or done.get("stage") != "reproduce":
        raise InputError(f"--out {out}: holds other things than a page of this command; name a new folder")


def _listed(item: Item) -> str:
    return f"{item.name:<12} needs {item.needs:<9} {item.title}"


def _make(item: Item, args: argparse.Namespace) -> int:
    from voxveil.research.papers.catalogue import maker
    from voxveil.research.papers.item_page import text_lines, write_item
    from voxveil.runtime.atomic import whole_directory

    result = maker(item)(args.project, _options(args))
    with whole_directory(args.out.resolve()) as folder:
        write_item(folder, item, result, _command(item, args))
    print("\n".join(text_lines(result)).strip("\n"))
    print(f"\npage, figures and every number: {args.out}/index.html")
    return 0


def _options(args: argparse.Namespace) -> Options:
    from voxveil.research.papers.result import Options

    return Options(
        args.size, args.features, args.scores, args.system, replicates=args.replicates, seed=args.seed
    )


def _command(item: Item, args: argparse.Namespace) -> str:
    """Return the command that makes the page again, without the folders of this machine."""
    words = ["voxveil", "reproduce", item.name, "--out", "DIR"]
    for option, given in (("--project", args.project != Path()), ("--features", args.features)):
        words += [option, "DIR"] if given and item.needs != "nothing" else []
    words += ["--scores", "DIR"] if args.scores is not None else []
    words += ["--system", args.system] if args.system else []
    words += ["--size", args.size] if args.size != "mini" else []
    words += ["--replicates", str(args.replicates)] if args.scores is not None else []
    return shlex.join([*words, "--seed", str(args.seed)])


def _make_inputs(item: Item, args: argparse.Namespace) -> None:
    """Make what the item needs by DVC; finished stages are kept."""
    if item.needs == "nothing":
        return
    if item.needs == "features":
        from voxveil.research.commands.probe import run_experiment

        if args.features is None:
            raise InputError(f"reproduce {item.name} --run: --features DIR says where the probes go")
        run_experiment(args.features, item.overlays[args.size], args.set)
        return
    from voxveil.cli.repro import reproduce

    _use(args.project, item.overlays[args.size], args.set)
    reproduce(args.project)


def _use(project: Path, overlay: str, changes: list[str]) -> None:
    """Compose params.yaml of the project, unless it was edited: what was edited is never overwritten."""
    from voxveil.config.compose import changes_of, compose, overlay_path, params_text, was_edited
    from voxveil.runtime.atomic import write_text

    path = project / "params.yaml"
    values = changes_of(changes)
    wanted = params_text(compose(overlay_path(overlay, project), values), overlay, values)
    present = path.read_text(encoding="utf-8") if path.is_file() else ""
    if present.partition("\n")[2] == wanted.partition("\n")[2]:
        return
    if present and was_edited(project, or_set=True):
        options = "".join(f" --set {shlex.quote(change)}" for change in changes)
        raise InputError(
            f"{path}: was edited; run what it says ('dvc repro') and leave out --run, or replace it:"
            f" voxveil params use {overlay}{options} --force"
        )
    write_text(path, wanted)
