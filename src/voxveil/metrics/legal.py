"""Singling out and linkability in the legal sense (Vauquier et al., Interspeech 2025).

Computed by the package voice-anonymization-legal-eval, the authors' reference implementation of the
criteria of the Article 29 Working Party's opinion 05/2014.

* Linkability: probability that an input's own reference is not outscored among N' candidates, the
  closed form over candidate sets; a tie is a success. At N' = N it is the optimistic identification
  rate.
* Singling out: the first input of each speaker is its test item, the others calibrate the threshold of
  each reference's predicate to fire on 1/N; success where it fires on exactly one test item. A random
  predicate reaches 1/e.
"""

from __future__ import annotations

import numpy as np

from voxveil.metrics.data import FloatArray, RankSet, UndefinedMetricError
from voxveil.metrics.ranks import Ranks

__all__ = ["TRIVIAL_SINGLING_OUT", "linkability_legal", "singling_out_outcomes"]

TRIVIAL_SINGLING_OUT = float(np.exp(-1))
"""What a random predicate of expectation 1/N isolates."""


def linkability_legal(ranks: Ranks, n_candidates: int | None = None) -> float:
    """Return the probability of linking an input among ``n_candidates`` (default all N), in [0, 1].

    Raises:
        ValueError: If ``n_candidates`` is not in 1..N.
    """
    from legal_eval.io import ScoreMatrix
    from legal_eval.metrics.linkability import linkability

    n = ranks.n_references
    names = [str(j) for j in range(n)]
    # Only its shape is read: the number of stronger references is passed in.
    shape = np.broadcast_to(np.float64(0.0), (n, ranks.best.size))
    matrix = ScoreMatrix(
        scores=shape,
        enroll_speakers=names,
        test_speakers=[names[s] for s in ranks.speaker_index],
        metadata={},
    )
    size = n if n_candidates is None else n_candidates
    return float(linkability(matrix, size, estimator="exact", beaters=ranks.best - 1)[0])


def singling_out_outcomes(ranks: RankSet) -> FloatArray:
    """Return 1 where a reference singles out exactly one test item, else 0, one per tested speaker.

    Raises:
        UndefinedMetricError: If a speaker has no second input to calibrate on, or there is one speaker.
    """
    from legal_eval.metrics.singling_out import ConversationScores, singling_out

    speakers, first, counts = np.unique(ranks.speaker_index, return_index=True, return_counts=True)
    if speakers.size < 2:
        raise UndefinedMetricError("only one speaker has inputs; singling out needs at least 2")
    if counts.min() < 2:
        short = int(np.count_nonzero(counts < 2))
        raise UndefinedMetricError(
            f"{short} of {speakers.size} speakers have a single input: none left to calibrate on"
        )
    rest = np.ones(ranks.n_inputs, dtype=np.bool_)
    rest[first] = False
    rows = np.flatnonzero(rest)
    rows = rows[np.argsort(ranks.speaker_index[rows], kind="stable")]
    stops = np.cumsum(counts - 1)
    names = [str(s) for s in speakers]
    scores = ConversationScores(
        enroll_speakers=names,
        dataset_speakers=names,
        test_scores=np.ascontiguousarray(ranks.scores[first][:, speakers].T),
        calibration_scores=np.ascontiguousarray(ranks.scores[rows][:, speakers].T),
        calibration_slices=[(int(b - c), int(b)) for b, c in zip(stops, counts - 1, strict=True)],
    )
    outcomes = singling_out(scores, int(speakers.size), n_runs=1)
    return np.array([outcomes[name][0] for name in names], dtype=np.float64)
