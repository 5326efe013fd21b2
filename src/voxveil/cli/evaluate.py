"""``voxveil evaluate``: judge a score file, ours or anybody's."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxveil.cli.actions import require_least
from voxveil.runtime.errors import InputError, import_extra

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = (
    "Judge a score file: every privacy metric, its interval, what it reads when nothing leaks, and warnings."
)

EPILOG = """input:
  trials   ENROLMENT UTTERANCE target|nontarget   (text, .gz too)
  scores   ENROLMENT UTTERANCE SCORE              (higher = more alike)
  or one .npz with target and nontarget, or with scores[input, reference],
  input_labels and reference_labels (these also give the rank metrics)

examples:
  voxveil evaluate --scores scores.txt --trials trials.txt --json result.json
  voxveil evaluate --scores scores.txt.gz --trials trials.txt.gz --rank rank.npz --plots figures/
  voxveil evaluate --scores scores.npz --replicates 0
"""

_WORST = 5
_PAV_RULES = ("zebra", "pure-bins", "end-bins", "all-bins", "none")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil evaluate``."""
    given = parser.add_argument_group("input")
    given.add_argument("--scores", type=Path, required=True, metavar="FILE", help="score file or .npz")
    given.add_argument("--trials", type=Path, metavar="FILE", help="trial list of a text score file")
    given.add_argument(
        "--rank", type=Path, metavar="FILE.npz", help="every input against the same N references"
    )
    given.add_argument("--utt2spk", type=Path, metavar="FILE", help="UTTERANCE SPEAKER lines")
    given.add_argument("--enrolments", type=Path, metavar="FILE", help="ENROLMENT UTTERANCE... lines")
    given.add_argument(
        "--allow-repeats", action="store_true", help="keep each of a pair's scores (never averaged)"
    )
    given.add_argument(
        "--scores-are-llr", action="store_true", help="scores are natural-log LLRs: gives cllr"
    )
    how = parser.add_argument_group("estimation")
    how.add_argument(
        "--pav-rule", choices=_PAV_RULES, default="zebra", help="smoothing of eps_max_pav (zebra)"
    )
    how.add_argument(
        "--replicates", type=int, default=1000, metavar="N", help="behind each interval (1000; 0: none)"
    )
    how.add_argument("--seed", type=int, default=0, help="seed of the replicates (0)")
    out = parser.add_argument_group("output")
    out.add_argument("--json", type=Path, metavar="FILE", help="write the full result")
    out.add_argument(
        "--speakers", type=Path, metavar="FILE", help="write one row per speaker, most exposed first"
    )
    out.add_argument("--plots", type=Path, metavar="DIR", help="write figures (pip install 'voxveil[plots]')")
    out.add_argument("--mlflow", action="store_true", help="log to MLflow (pip install 'voxveil[mlflow]')")
    out.add_argument("--attacker", default="external", help="attacker's name in MLflow (external)")
    out.add_argument("--scenario", default="unspecified", help="scenario's name in MLflow (unspecified)")


def run(args: argparse.Namespace) -> int:
    """Read, evaluate, write, print."""
    from voxveil.metrics.catalogue import format_result
    from voxveil.metrics.disclosure import format_speakers, speaker_table
    from voxveil.metrics.evaluation import read_evaluation
    from voxveil.metrics.suite import SuiteOptions, evaluate_scores
    from voxveil.runtime.atomic import write_json, write_text

    require_least(args, replicates=0)
    for wanted, package, extra in ((args.plots, "matplotlib", "plots"), (args.mlflow, "mlflow", "mlflow")):
        if wanted:
            import_extra(package, extra)
    options = SuiteOptions(args.scores_are_llr, args.pav_rule, args.replicates, args.seed)
    found = read_evaluation(
        args.scores,
        args.trials,
        rank=args.rank,
        utt2spk=args.utt2spk,
        enrolments=args.enrolments,
        allow_repeats=args.allow_repeats,
    )
    result = evaluate_scores(found.scores, found.ranks, options=options, rank_reason=found.rank_reason)
    table = speaker_table(found.ranks) if found.ranks is not None else []
    if args.speakers is not None and found.ranks is None:
        raise InputError(f"{args.scores}: --speakers needs ranks: {found.rank_reason}")
    if args.json is not None:
        write_json(args.json, result)
    if args.speakers is not None:
        write_text(args.speakers, format_speakers(table))
    if args.plots is not None:
        from voxveil.cli.figures import score_figures
        from voxveil.metrics.plots import save_figure

        for name, figure in score_figures(found.scores, found.ranks):
            save_figure(figure, args.plots / f"{name}.png")
    print(format_result(result))
    if table:
        print("\nmost exposed speakers:")
        print(format_speakers(table[:_WORST]).expandtabs(22).rstrip())
    if args.mlflow:
        from voxveil.tracking.publish.evaluation import publish_evaluation

        print(f"\nMLflow run {publish_evaluation(result, args.attacker, args.scenario, options)}")
    return 0
