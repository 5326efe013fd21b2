"""Worked examples of the metrics' limits, as numbers; :mod:`voxveil.metrics.plots` draws them.

* Same mean, unequal variance: target N(0, 2^2), nontarget N(0, 1). The EER is 50 %, the true LLR
  3/8 s^2 - log 2 is unbounded (Figs. 1 and 2 of the worst-case paper).
* Two PAV examples of six scores, labels 0 1 0 1 0 1 and 1 0 1 0 1 0, repeated to length 6n: the
  worst case stays log 2 and 0 while the EER tends to 50 %.
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import CountTable, FloatArray
from voxveil.runtime.seeding import stream

__all__ = ["pav_example", "same_mean_llr", "same_mean_scores"]


def same_mean_scores(n: int = 2000, seed: int = 0) -> CountTable:
    """Draw ``n`` target scores of N(0, 2^2) and ``n`` nontarget scores of N(0, 1)."""
    rng = stream(seed, "metrics", "same-mean-gaussians", n)
    return CountTable.from_scores(rng.normal(0, 2, n), rng.normal(0, 1, n))


def same_mean_llr(scores: FloatArray) -> FloatArray:
    """Return the true LLR in nat of N(0, 2^2) against N(0, 1)."""
    result: FloatArray = 0.375 * scores**2 - np.log(2)
    return result


def pav_example(first_label: int, repeats: int = 1) -> CountTable:
    """Return scores 1..6n with alternating labels.

    Args:
        first_label: Label of the lowest score, 0 (nontarget) or 1 (target).
        repeats: n; six scores each.
    """
    if first_label not in (0, 1) or repeats < 1:
        raise ValueError(
            f"first_label must be 0 or 1 and repeats at least 1; got {first_label} and {repeats}"
        )
    scores = np.arange(1, 6 * repeats + 1, dtype=np.float64)
    targets = (np.arange(scores.size) + first_label) % 2 == 1
    return CountTable.from_scores(scores[targets], scores[~targets])
