"""A PLDA fit failed, or gave NaN, with one utterance per speaker or too few speakers.

Seen in https://github.com/speechbrain/speechbrain/issues/1022 and https://github.com/RaviSoji/plda/issues/63.
"""

from __future__ import annotations

import numpy as np
import pytest

from voxveil.attack.plda import fit_plda
from voxveil.runtime.errors import InputError

SPEAKERS, DIMENSION = 5, 512


def drawn(each: int) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    voices = rng.normal(0, 1, (SPEAKERS, 1, DIMENSION))
    vectors = voices + rng.normal(0, 0.5, (SPEAKERS, each, DIMENSION))
    return vectors.reshape(-1, DIMENSION), [f"s{i}" for i in range(SPEAKERS) for _ in range(each)]


def test_one_utterance_each_is_refused_with_the_minimum() -> None:
    with pytest.raises(
        InputError, match="0 of 5 speakers have 2 utterances.*at least 2 speakers with at least 2"
    ):
        fit_plda(*drawn(1), 64)


def test_two_utterances_each_give_finite_and_symmetric_scores() -> None:
    vectors, speakers = drawn(2)
    model = fit_plda(vectors, speakers, 64)
    projected = model.project(vectors)
    scores = model.matrix(projected, [row[None] for row in projected])
    assert np.isfinite(scores).all()
    assert np.allclose(scores, scores.T, atol=1e-9)
    same = np.equal.outer(speakers, speakers) & ~np.eye(len(speakers), dtype=bool)
    other = ~np.equal.outer(speakers, speakers)
    assert scores[same].min() > scores[other].max()


def test_constant_vectors_give_no_nan() -> None:
    model = fit_plda(np.ones((10, 8)), [f"s{i // 2}" for i in range(10)], 4)
    projected = model.project(np.ones((3, 8)))
    assert np.isfinite(model.matrix(projected, [projected])).all()
