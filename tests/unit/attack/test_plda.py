"""PLDA scores against densities written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from voxveil.attack.backends import Cosine, Euclidean
from voxveil.attack.plda import Plda, fit_plda
from voxveil.runtime.errors import InputError


def drawn(speakers: int, each: int, size: int = 6, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(0, 1, (size, size))
    spread = np.array([3.0, 2.0, 1.0, 0.3, 0.1, 0.05][:size])
    voices = rng.normal(0, 1, (speakers, 1, size)) * spread
    rows = (voices + rng.normal(0, 1, (speakers, each, size))) @ mix
    return rows.reshape(-1, size), [f"s{i:03d}" for i in range(speakers) for _ in range(each)]


def literal_llr(psi: np.ndarray, enrolled: np.ndarray, tested: np.ndarray) -> float:
    """Return log p(all | one speaker) - log p(enrolled) - log p(tested), joint Gaussians by dimension."""
    total = 0.0
    for d, variance in enumerate(psi):
        rows = np.concatenate([enrolled[:, d], tested[None, d]])

        def density(values: np.ndarray, variance: float = variance) -> float:
            covariance = np.eye(len(values)) + variance
            return float(multivariate_normal(np.zeros(len(values)), covariance).logpdf(values))

        total += density(rows) - density(enrolled[:, d]) - density(tested[None, d])
    return total


def test_scores_are_the_literal_likelihood_ratios() -> None:
    vectors, speakers = drawn(30, 5)
    model = fit_plda(vectors, speakers, 4)
    rows = model.project(vectors)
    references = [rows[:1], rows[5:8], rows[10:15]]
    scores = model.matrix(rows[20:24], references)
    for i, tested in enumerate(rows[20:24]):
        for j, enrolled in enumerate(references):
            assert scores[i, j] == pytest.approx(literal_llr(model.psi, enrolled, tested), abs=1e-9)


def test_projected_speech_of_one_speaker_has_unit_covariance() -> None:
    vectors, speakers = drawn(200, 20)
    model = fit_plda(vectors, speakers, 5)
    rows = model.project(vectors).reshape(200, 20, -1)
    within = rows - rows.mean(axis=1, keepdims=True)
    covariance = np.einsum("sid,sie->de", within, within) / (200 * 19)
    assert np.allclose(covariance, np.eye(covariance.shape[0]), atol=0.05)
    assert (np.diff(model.psi) <= 1e-9).all()
    assert (model.psi >= 0).all()


def test_it_tells_speakers_apart_that_it_has_not_seen() -> None:
    vectors, speakers = drawn(120, 6)
    model = fit_plda(vectors[:480], speakers[:480], 5)
    rows = model.project(vectors[480:]).reshape(40, 6, -1)
    scores = model.matrix(rows[:, 5], list(rows[:, :5]))
    raw = vectors[480:].reshape(40, 6, -1)
    unit = raw / np.linalg.norm(raw, axis=2, keepdims=True)
    plain = Cosine().matrix(unit[:, 5], list(unit[:, :5]))
    own = np.eye(40, dtype=bool)
    assert (scores.argmax(axis=1) == np.arange(40)).mean() > (plain.argmax(axis=1) == np.arange(40)).mean()
    assert scores[own].mean() > 0 > scores[~own].mean()


def test_arrays_rebuild_the_model() -> None:
    model = fit_plda(*drawn(10, 3), 4)
    again = Plda.from_arrays(model.to_arrays(), "plda.npz")
    assert all(np.array_equal(vars(model)[name], vars(again)[name]) for name in vars(model))
    spoiled = {**model.to_arrays(), "plda_psi": np.ones(3)}
    with pytest.raises(InputError, match=r"plda\.npz: the arrays of its PLDA do not fit together"):
        Plda.from_arrays(spoiled, "plda.npz")


def test_euclidean_distance_is_literal() -> None:
    rng = np.random.default_rng(1)
    inputs, references = rng.normal(size=(7, 3)), [rng.normal(size=(n, 3)) for n in (1, 2, 4)]
    scores = Euclidean().matrix(inputs, references)
    for i, row in enumerate(inputs):
        for j, each in enumerate(references):
            assert scores[i, j] == pytest.approx(-np.sqrt(((row - each.mean(axis=0)) ** 2).sum()))
