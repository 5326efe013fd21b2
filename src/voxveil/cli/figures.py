"""``voxveil figures``: draw the figures that explain the metrics, or one's own scores in the same form."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.runtime.errors import InputError, import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from voxveil.metrics.data import RankSet, ScoreSet

__all__ = ["EPILOG", "HELP", "add_arguments", "run", "score_figures"]

HELP = "Draw the figures that explain the metrics; with --scores, one's own scores in the same form."

EPILOG = """figures:
  same-mean   Gaussians of equal mean, standard deviations 2 and 1: EER 50 %, unbounded LLR
  pav         the two six-score PAV examples and their repetition to length 6n
  scores, det, ece, ranks, speakers, population   of the score file given by --scores

examples:
  voxveil figures same-mean pav --out figures/
  voxveil figures ranks population --scores rank.npz --out figures/ --format svg
"""

_EXAMPLES = ("same-mean", "pav")
_OF_TRIALS = ("scores", "det", "ece")
_OF_RANKS = ("ranks", "speakers", "population")
FIGURES = (*_EXAMPLES, *_OF_TRIALS, *_OF_RANKS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil figures``."""
    parser.add_argument("names", nargs="+", choices=FIGURES, metavar="NAME", help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the figures")
    parser.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="file format (png)")
    parser.add_argument("--scores", type=Path, metavar="FILE", help="score file or .npz")
    parser.add_argument("--trials", type=Path, metavar="FILE", help="trial list of a text score file")
    parser.add_argument(
        "--rank", type=Path, metavar="FILE.npz", help="every input against the same N references"
    )
    parser.add_argument("--allow-repeats", action="store_true", help="keep each of a pair's scores")
    parser.add_argument("--seed", type=int, default=0, help="seed of the drawn examples (0)")


def score_figures(scores: ScoreSet, ranks: RankSet | None) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) of everything that can be drawn of an attack."""
    from voxveil.metrics import plots
    from voxveil.metrics.disclosure import speaker_table
    from voxveil.metrics.pav import pav
    from voxveil.metrics.population import population_curve
    from voxveil.metrics.ranks import rank_inputs

    table = scores.table()
    yield "scores", plots.score_figure(table)
    yield "det", plots.det_figure({"trials": table})
    yield "ece", plots.ece_figure(pav(table))
    if ranks is not None:
        histogram = rank_inputs(ranks).histogram()
        yield "ranks", plots.rank_histogram_figure({"inputs": histogram})
        yield "speakers", plots.speakers_figure(speaker_table(ranks), ranks.n_references)
        yield "population", plots.population_figure(population_curve(histogram))


def run(args: argparse.Namespace) -> int:
    """Draw the figures asked for."""
    import_extra("matplotlib", "plots")
    from voxveil.metrics import plots
    from voxveil.metrics.evaluation import read_evaluation

    wanted = list(dict.fromkeys(args.names))
    of_scores = [name for name in wanted if name not in _EXAMPLES]
    drawn: dict[str, Figure] = {}
    if of_scores:
        if args.scores is None:
            raise InputError(f"figure {of_scores[0]}: needs a score file; give --scores FILE")
        found = read_evaluation(args.scores, args.trials, rank=args.rank, allow_repeats=args.allow_repeats)
        missing = [name for name in of_scores if name in _OF_RANKS]
        if missing and found.ranks is None:
            raise InputError(f"{args.scores}: figure {missing[0]} needs ranks: {found.rank_reason}")
        drawn.update(
            (name, figure) for name, figure in score_figures(found.scores, found.ranks) if name in of_scores
        )
    if "same-mean" in wanted:
        drawn["same-mean"] = plots.same_mean_figure(seed=args.seed)
    if "pav" in wanted:
        drawn["pav"] = plots.pav_examples_figure()
    for name in wanted:
        path = args.out / f"{name}.{args.format}"
        plots.save_figure(drawn[name], path)
        print(path)
    return 0
