"""The command line: a table of commands, each imported only when it is called, and registered commands."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from voxveil import __version__
from voxveil.runtime import extensions
from voxveil.runtime.errors import VoxveilError

__all__ = ["COMMANDS", "main"]

#: Command -> (module under voxveil.cli, one line of help).
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "run the whole chain on speech made by espeak-ng and print the results"),
    "anonymize": ("anonymize", "anonymize a folder of recordings with a trained model"),
    "attack": ("attack", "attack anybody's anonymized speech and judge what is left"),
    "evaluate": ("evaluate", "judge a score file: privacy in bits and likelihood ratios"),
    "figures": ("figures", "draw the figures that explain the metrics"),
    "params": ("params", "choose a scale: params use quickstart"),
    "stage": ("stage", "run one stage of the pipeline"),
    "corpus": ("corpus", "check a corpus, or unpack a prepared split into plain files"),
    "data": ("data", "versions of datasets: register, compare, fetch, forget a speaker"),
    "ledger": ("ledger", "show and add up what has been released"),
    "audit": ("audit", "hold mechanisms or an attack against the epsilon claimed"),
    "compare": ("compare", "hold runs against each other: differences, intervals, what is within noise"),
    "gate": ("gate", "decide whether a newly trained system may take the champion's place"),
    "track": ("track", "publish finished results to MLflow, find an experiment's runs"),
    "model": ("model", "register a model for the team, or fetch one"),
    "stack": ("stack", "PostgreSQL, S3 and MLflow for a team, on one machine without Docker"),
    "pipeline": ("pipeline", "compile, run, start and schedule the Kubeflow pipelines"),
}

_EXAMPLES = """examples:
  voxveil demo
  voxveil anonymize recordings/ private/ --model models/anon_dp
  voxveil evaluate --scores scores.txt --trials trials.txt --json result.json
  voxveil COMMAND --help
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status (0 only for complete results)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Threads that spin for long starve each other on a busy machine; threads that sleep at once waste an
    # idle one. About a tenth of a millisecond of spinning loses little on either.
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name that the terminal's encoding cannot show is no reason to die.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _dispatch(arguments)
    except VoxveilError as error:
        print(f"voxveil: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("voxveil: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"voxveil: error: {_reason(error)}", file=sys.stderr)
        return 1


def _reason(error: OSError) -> str:
    """Return the file and what the system says of it, in one line."""
    faults = error.args[0] if error.args else None
    if isinstance(faults, list) and faults:
        # shutil copies a folder to its end and then lists every failed file; the first one is shown.
        return " ".join(str(faults[0][-1]).split())
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _dispatch(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="voxveil",
        description="Anonymize speech with differential privacy, attack it, and measure what is left.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"voxveil {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    for name, (module, help_line) in COMMANDS.items():
        if name == chosen:
            _add_command(commands, name, help_line, importlib.import_module(f"voxveil.cli.{module}"))
        else:
            commands.add_parser(name, help=help_line)
    # Commands of the product are called without a search for other packages' entry points.
    for name, entry in {} if chosen in COMMANDS else extensions.registered(extensions.COMMANDS).items():
        if name == chosen:
            _add_command(commands, name, extensions.summary(entry), extensions.load(entry))
        elif name not in COMMANDS:
            commands.add_parser(name, help=extensions.summary(entry))
    options = parser.parse_args(arguments)
    return int(options.run(options))


def _add_command(commands: Any, name: str, help_line: str, command: Any) -> None:
    """Add the parser of one command with its options; ``command`` is its module."""
    sub = commands.add_parser(
        name,
        help=help_line,
        description=command.HELP,
        epilog=command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(sub)
    if hasattr(command, "run"):
        # A command with actions has a ``run`` for each of them instead.
        sub.set_defaults(run=command.run)


if __name__ == "__main__":
    sys.exit(main())
