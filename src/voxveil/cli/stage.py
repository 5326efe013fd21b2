"""``voxveil stage NAME``: the same command for DVC, Kubeflow and people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from voxveil.cli.actions import add_params
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES, stage_spec
from voxveil.stages.run import run_stage

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Run one stage: read its declared inputs, rewrite its declared outputs whole."

EPILOG = (
    "stages:\n"
    + "".join(f"  {spec.command:16} {spec.help}\n" for spec in STAGES)
    + """
examples:
  voxveil stage prepare --params params.yaml \\
      --out public=outputs/prepare/public --out private=outputs/prepare/private
  voxveil stage train-pitch --key dp --params params.yaml \\
      --in public=outputs/prepare/public --out model=outputs/train_pitch/dp
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil stage``."""
    parser.add_argument("name", metavar="NAME", help="stage, e.g. train-pitch")
    parser.add_argument("--key", default="", help="system or variant the stage runs for")
    add_params(parser)
    parser.add_argument("--in", dest="inputs", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--out", dest="outputs", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument(
        "--digest",
        dest="digests",
        action="append",
        default=[],
        metavar="NAME=SHA256",
        help="digest an input must have",
    )
    parser.add_argument(
        "--executor-input",
        metavar="JSON",
        help="Kubeflow's executor input; replaces --key, --params, --in, --out and --digest",
    )


def run(args: argparse.Namespace) -> int:
    """Run the stage; 0 when every output is in place."""
    if not stage_spec(args.name).torch:
        # Tiny matrices: idle BLAS threads spin and make evaluate seven times slower. Before numpy loads.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if args.executor_input is not None:
        from voxveil.kubeflow import run_executor_input

        return int(run_executor_input(args.name, args.executor_input))
    for flag, values in (("--key", [args.key]), ("--in", args.inputs), ("--out", args.outputs)):
        _refuse_placeholders(flag, values)
    done = run_stage(
        args.name,
        args.params,
        {name: Path(path) for name, path in pairs(args.inputs, "--in").items()},
        {name: Path(path) for name, path in pairs(args.outputs, "--out").items()},
        key=args.key,
        digests=pairs(args.digests, "--digest"),
    )
    for name, record in done.items():
        print(f"{args.name}: {name}: {len(record.files)} files, digest {record.digest[:16]}", file=sys.stderr)
    return 0


def pairs(values: Sequence[str], flag: str) -> dict[str, str]:
    """Parse ``NAME=VALUE`` options; a repeated or malformed one is an error."""
    result: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InputError(f"{flag} must be NAME=VALUE, got {text!r}")
        if name in result:
            raise InputError(f"{flag} {name} is given twice; once is allowed")
        result[name] = value
    return result


def _refuse_placeholders(flag: str, values: Sequence[str]) -> None:
    for value in values:
        if value == "null" or value.rpartition("=")[2] == "null" or "{{" in value:
            raise InputError(f"{flag} must be a value, got the unfilled placeholder {value!r}")
