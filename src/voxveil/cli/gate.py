"""``voxveil gate``: may a newly trained system take the champion's place?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.cli.actions import add_params
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voxveil.results.comparison.run_results import RunResults
    from voxveil.results.gate.evidence import Evidence

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

#: Exit status of a decision against the candidate.
KEPT = 4

HELP = "Decide whether a newly trained system may take the champion's place, with every reason."

EPILOG = """The upper end of the paired 95 % interval of the loss in identification rate, linkability and
D_ECE must lie below a fixed margin, against a reference that only people move. Epsilon, unit and delta must
be no weaker than the champion's, word errors within a margin of both. Worst-case epsilon_max gates nothing.
An undefined metric never promotes. Margins and bars: section gate of params.yaml. RUN is as for
'voxveil compare'; the reference's needs its scores. Exit status: 0 promoted, 4 kept.

examples:
  voxveil gate outputs --system anon_dp --reference v1.0 --champion main
  voxveil gate outputs --system anon_dp --out decision.json        # no champion yet: absolute bars
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil gate``."""
    parser.add_argument("candidate", metavar="RUN", help="the newly trained run")
    parser.add_argument("--system", required=True, metavar="NAME", help="its system")
    for role, text in (("reference", "pinned run to hold its attacks against"), ("champion", "run in use")):
        parser.add_argument(f"--{role}", default="", metavar="RUN", help=text)
        parser.add_argument(
            f"--{role}-system", default="", metavar="NAME", help="its system (default: as --system)"
        )
    add_params(parser, "margins and bars (%(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the decision as JSON")


def run(args: argparse.Namespace) -> int:
    """Decide, print every check and the reason; 0 promoted, 4 kept."""
    import tempfile

    from voxveil.config import load_params
    from voxveil.results.gate.decision import decide, gated_attacks
    from voxveil.results.gate.evidence import losses_or_reason
    from voxveil.runtime.atomic import write_json
    from voxveil.runtime.project import project_root
    from voxveil.tracking.find_runs import find_run
    from voxveil.tracking.store import resolve_store

    rules = load_params(args.params).gate
    store, root = resolve_store(), project_root()
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:

        def found(text: str) -> RunResults | None:
            return find_run(text, store, root, Path(scratch)) if text else None

        run_ = find_run(args.candidate, store, root, Path(scratch))
        reference, champion = found(args.reference), found(args.champion)
        candidate = _evidence(run_, args.system)
        originals = [str(summary["system"]) for summary in run_.systems if summary.get("kind") == "original"]
        names = {role: getattr(args, f"{role}_system") or args.system for role in ("reference", "champion")}
        attacks = gated_attacks(candidate, rules)
        decision = decide(
            candidate,
            rules,
            reference=_evidence(reference, names["reference"]) if reference else None,
            champion=_evidence(champion, names["champion"]) if champion else None,
            losses=losses_or_reason(
                _scores(reference, names["reference"]), _scores(run_, args.system), attacks, rules.replicates
            ),
            original=_evidence(run_, originals[0]) if originals else None,
        )
    for finding in decision.findings:
        print(f"{'passed' if finding.passed else 'FAILED'}  {finding.text}")
    print(decision.reason.partition(":")[0] if decision.promote else decision.reason)
    if args.out is not None:
        write_json(args.out, decision.to_json())
    return 0 if decision.promote else KEPT


def _evidence(run_: RunResults, system: str) -> Evidence:
    """Return the measurements of a system of a run.

    Raises:
        InputError: The run has no such system.
    """
    from voxveil.results.gate.evidence import read_evidence

    summaries: dict[str, Mapping[str, object]] = {str(summary["system"]): summary for summary in run_.systems}
    if system not in summaries:
        raise InputError(f"{run_.label}: has no system {system!r}; it has: {', '.join(sorted(summaries))}")
    return read_evidence(summaries[system], f"{system} of {run_.label}")


def _scores(run_: RunResults | None, system: str) -> Path | None:
    return None if run_ is None or run_.scores is None else run_.scores / system
