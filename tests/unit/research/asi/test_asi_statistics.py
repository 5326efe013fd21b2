"""Identification by statistics: the literal rule, and speakers whom a network that learns by heart misses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from voxveil.research.asi.statistics import StatisticsClassifier, pitch_statistics, utterance_statistics


def test_statistics_are_means_and_deviations() -> None:
    features = np.random.default_rng(1).normal(size=(7, 9)).astype(np.float32)
    expected = [*features.mean(axis=0), *features.std(axis=0)]
    assert np.allclose(utterance_statistics(features), expected, atol=1e-6)


def test_statistics_of_pitch_are_those_of_voiced_frames() -> None:
    pitch, voicing = [0.0, 0.4, 0.6, 0.0, 0.8], [0.0, 1.0, 1.0, 0.2, 1.0]
    got = pitch_statistics(np.array([pitch, voicing], np.float32).T)
    heard = [0.4, 0.6, 0.8]
    expected = [0.6, np.std(heard), *np.quantile(heard, (0.1, 0.25, 0.5, 0.75, 0.9)), 3.2 / 5]
    assert np.allclose(got, expected, atol=1e-6)
    unvoiced = pitch_statistics(np.zeros((4, 2), np.float32))
    assert np.array_equal(unvoiced, np.zeros(8))


def test_distances_are_those_of_the_literal_rule() -> None:
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(4), 5)
    vectors = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.1] + labels[:, None]
    vectors = np.column_stack([vectors, np.full(20, 7.0)])  # what never varies says nothing
    tested = np.column_stack([rng.normal(size=(6, 3)), np.full(6, 9.0)])
    scaled, asked = vectors[:, :3] / vectors[:, :3].std(axis=0), tested[:, :3] / vectors[:, :3].std(axis=0)
    means = [scaled[labels == k].mean(axis=0) for k in range(4)]
    covariance, _ = ledoit_wolf(
        np.stack([v - means[k] for v, k in zip(scaled, labels, strict=True)]), assume_centered=True
    )
    literal = [[(x - m) @ np.linalg.solve(covariance, x - m) for m in means] for x in asked]
    assert np.allclose(StatisticsClassifier(vectors, labels.tolist()).distances(tested), literal)


def test_many_dimensions_and_few_utterances_are_no_obstacle() -> None:
    rng = np.random.default_rng(3)
    speakers = rng.normal(size=(30, 200))
    labels = np.repeat(np.arange(30), 3)
    classifier = StatisticsClassifier(speakers[labels] + rng.normal(size=(90, 200)), labels.tolist())
    named = classifier.distances(speakers + rng.normal(size=(30, 200))).argmin(axis=1)
    assert np.mean(named == np.arange(30)) > 0.9


def test_whoever_says_nothing_is_named_by_chance() -> None:
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(50), 4)
    classifier = StatisticsClassifier(rng.normal(size=(200, 20)), labels.tolist())
    named = classifier.distances(rng.normal(size=(500, 20))).argmin(axis=1)
    assert np.mean(named == np.resize(np.arange(50), 500)) == pytest.approx(0.02, abs=0.025)
