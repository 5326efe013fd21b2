"""``voxveil demo``: the whole chain on speech made by espeak-ng, then the results."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from voxveil.cli.repro import reproduce
from voxveil.config import Params, load_params
from voxveil.config.compose import compose, overlay_path, params_text, was_edited
from voxveil.runtime.atomic import read_json, whole_directory, write_bytes, write_text
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import InputError
from voxveil.runtime.git import NOT_INSTALLED, ask_git

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Run the whole chain on the embedded corpus (dvc repro), print the results and where to look next."

EPILOG = """examples:
  voxveil demo                     # from a checkout; a second run recomputes nothing
  voxveil demo --scale tiny        # the scale the tests use
"""

_PAIRS = Path("demo-audio")
_PAIRS_SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil demo``."""
    parser.add_argument("--scale", default="quickstart", help="overlay to compose (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run the demonstration in the checkout the working directory belongs to."""
    root = _checkout()
    os.chdir(root)
    params = _params(root, args.scale)
    reproduce(root)
    print(_results(root, params))
    return 0


def _checkout() -> Path:
    found = ask_git(Path.cwd(), "rev-parse", "--show-toplevel")
    if found.status == NOT_INSTALLED:
        raise InputError("git is not installed; DVC needs it")
    if found.status:
        raise InputError(
            f"{Path.cwd()}: is not a Git checkout, which DVC needs; use 'git clone', not an unpacked archive"
        )
    root = Path(found.line)
    if not (root / "dvc.yaml").is_file():
        raise InputError(f"{root}: has no dvc.yaml; run the demo in a checkout of voxveil")
    return root


def _params(root: Path, scale: str) -> Params:
    """Compose the scale, unless params.yaml was edited: then it is used as it is."""
    path = root / "params.yaml"
    if was_edited(root, or_set=True):
        print(
            "params.yaml was edited; it is used as it is"
            f" ('voxveil params use {scale} --force' would replace it)"
        )
    else:
        wanted = params_text(compose(overlay_path(scale, root)))
        if not path.is_file() or path.read_text(encoding="utf-8") != wanted:
            write_text(path, wanted)
        print(f"params.yaml: scale {scale}")
    return load_params(path)


def _results(root: Path, params: Params) -> str:
    from voxveil.results.report.terminal import results_table

    summaries = []
    for system in params.systems:
        folder = root / "outputs/evaluate" / system
        require_done(folder, f"evaluate[{system}]")
        summaries.append(read_json(folder / "summary.json"))
    pairs = _unpack_pairs(root, params)
    lines = ["", results_table(summaries), ""]
    if any(summary.get("corpus_synthetic") for summary in summaries):
        lines.append(
            "The corpus and every model of this run are synthetic speech (espeak-ng): the numbers show that"
        )
        lines.append("the chain works, they say nothing about real voices.")
    lines += [
        "",
        "Next:",
        f"  {pairs} original/anonymized pairs   {_PAIRS}/",
        "  report                          outputs/report/index.html",
        "  MLflow                          .venv/bin/mlflow ui --backend-store-uri sqlite:///mlflow.db",
        "  your own recording              .venv/bin/voxveil anonymize IN OUT --model models/anon_dp",
        "  every number                    outputs/evaluate/SYSTEM/, .venv/bin/dvc metrics show",
    ]
    return "\n".join(lines)


def _unpack_pairs(root: Path, params: Params) -> int:
    """Put three original/anonymized pairs into one folder, of as many systems as there are."""
    systems = [name for name, each in params.systems.items() if each.kind != "original"]
    rows = {
        name: read_json(root / "outputs/samples" / name / "samples.json")["utterances"] for name in systems
    }
    longest = max((len(samples) for samples in rows.values()), default=0)
    # One pair of each system before a second one of any; the most private system is usually the last.
    order = [
        (name, rows[name][i]) for i in range(longest) for name in reversed(systems) if i < len(rows[name])
    ]
    with whole_directory(root / _PAIRS) as folder:
        for system, sample in order[:_PAIRS_SHOWN]:
            for state in ("original", "anonymized"):
                data = (root / "outputs/samples" / system / sample[state]).read_bytes()
                write_bytes(folder / f"{system}.{sample['utterance']}.{state}.flac", data)
    return len(order[:_PAIRS_SHOWN])
