"""Table 2 of the worst-case paper: two examples of six scores for PAV, and their repetition to length 6n."""

from __future__ import annotations

import math
from pathlib import Path

from voxveil.metrics.eer import eer, eer_rocch
from voxveil.metrics.examples import pav_example
from voxveil.metrics.pav import pav, smooth
from voxveil.research.papers.result import Drawn, Number, Options, Result, Source, Table

__all__ = ["MAKERS", "exact_eer", "exact_worst"]

REPEATS = (1, 2, 5, 10, 100, 1001)


def exact_worst(first_label: int) -> float:
    """Return the exact worst case in nat of an example, whatever its length.

    Below the lowest score stands a pseudo-target (Laplace's rule). With a nontarget next to it the lowest
    bin holds one target and two nontargets: |log 1/2|. With a target first everything pools: no evidence.
    """
    return math.log(2) if first_label == 0 else 0.0


def exact_eer(first_label: int, repeats: int) -> float:
    """Return the exact EER of an example of length 6n, a fraction.

    With M = 3n targets and as many nontargets in turn, an odd M crosses between the two middle scores, at
    (M - 1)/(2M) errors of both kinds (first label 0) or (M + 1)/(2M) (first label 1); an even M at a half.
    """
    m = 3 * repeats
    if m % 2 == 0:
        return 0.5
    return (m - 1 if first_label == 0 else m + 1) / (2 * m)


def examples(project: Path, options: Options) -> Result:
    """Make table 2."""
    from voxveil.metrics.plots import pav_examples_figure

    places = {
        first: Source("computed", f"voxveil.metrics.examples.pav_example({first}, n), PAV, ZEBRA's smoothing")
        for first in (0, 1)
    }
    drawn = Drawn(
        "pav_examples",
        pav_examples_figure(),
        "Above: both examples with the share of targets by PAV, plain and smoothed. Below: worst case and EER"
        " as they are repeated.",
        "The first example rises in three steps, the second is flat; repeated, their worst case stays log 2"
        " and 0 while both EERs tend to 50 %",
        list(places.values()),
    )
    return Result(
        [_table(first, places[first]) for first in (0, 1)],
        [drawn],
        {
            "None expected": "These are exact: measured and published agree, or a metric is wrong."
            " Published: log 2 and 0 for six scores; repeated, the worst case stays and the EER tends to"
            " 50 %.",
            "EER of example 2": "It is not clipped here: above 50 % the scores point the wrong way. On the"
            " convex hull of the ROC it is 50 %.",
        },
        ("exact, no randomness", "smoothing as in ZEBRA (Laplace)"),
        [
            "In example 1 the lowest score is a nontarget's and the highest a target's, which is evidence of"
            " log 2 at both ends, however many scores stand between in turn. The EER loses sight of it as"
            " they grow in number. In example 2 the ends contradict what lies next to them, and PAV, whose"
            " ratio may only rise, finds nothing.",
        ],
    )


def _table(first: int, source: Source) -> Table:
    exact = Source("computed", f"closed form, first label {first} (voxveil.research.papers.pav_examples)")
    rows: list[list[str | Number]] = []
    for n in REPEATS:
        table = pav_example(first, n)
        bins = pav(table)
        name = f"example {first + 1}, n = {n}"
        rows.append(
            [
                str(6 * n),
                Number(f"{name}/max_abs_llr exact", exact_worst(first), "nat", exact, digits=5),
                Number(f"{name}/max_abs_llr", smooth(bins).max_abs_llr(), "nat", source, digits=5),
                Number(f"{name}/eer exact", 100 * exact_eer(first, n), "%", exact, digits=5),
                Number(f"{name}/eer", 100 * eer(table), "%", source, digits=5),
                Number(f"{name}/eer_rocch", 100 * eer_rocch(bins), "%", source, digits=5),
            ]
        )
    labels = " ".join(str((k + first) % 2) for k in range(6))
    worst = "log 2" if first == 0 else "0"
    return Table(
        f"Example {first + 1}, labels {labels} by rising score; published: max |LLR| {worst} at every length",
        ("Scores 6n", "max |LLR| exact, nat", "max |LLR|, nat", "EER exact, %", "EER, %", "EER on hull, %"),
        rows,
    )


MAKERS = {"wcd-table2": examples}
