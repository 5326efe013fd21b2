"""(epsilon, delta) by numerical composition, and the lemma it rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from voxveil.privacy import (
    Identity,
    LaplaceBall,
    LaplaceCube,
    LaplaceSimplex,
    Loss,
    RecognizedWords,
    utterance_loss,
)
from voxveil.privacy.audit.accounting import approximate_epsilon
from voxveil.runtime.errors import PrivacyError

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 0.28), (1.0, 0.56), (3.0, 0.80), (10.0, 0.94)])
def test_the_ratio_to_the_sum_at_350_vectors(epsilon: float, ratio: float) -> None:
    loss = LaplaceSimplex(epsilon).loss_for((350, 256))
    pure = utterance_loss(loss, 350).epsilon
    assert approximate_epsilon({"content": loss}, 350) / pure == pytest.approx(ratio, abs=0.006)


def test_one_vector_at_a_tiny_delta_costs_its_epsilon() -> None:
    loss = LaplaceSimplex(2.0).loss_for((1, 256))
    assert approximate_epsilon({"content": loss}, 1, 1e-12) == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_one_vector_has_the_closed_form(delta: float) -> None:
    """Laplace under a shift of its sensitivity: delta = 1 - exp((e - epsilon) / 2)."""
    loss = LaplaceSimplex(2.0).loss_for((1, 256))
    expected = 2.0 + 2.0 * math.log1p(-delta)
    assert approximate_epsilon({"content": loss}, 1, delta) == pytest.approx(expected, abs=1e-4)


def test_the_cube_is_far_below_its_epsilon_and_streams_add() -> None:
    pitch = LaplaceCube(1.0).loss_for((16, 350))
    content = LaplaceSimplex(1.0).loss_for((350, 256))
    assert approximate_epsilon({"pitch": pitch}, 350) == pytest.approx(0.046, abs=0.001)
    both = approximate_epsilon({"pitch": pitch, "content": content}, 350)
    assert both == pytest.approx(
        approximate_epsilon({"pitch": pitch}, 350, 5e-7)
        + approximate_epsilon({"content": content}, 350, 5e-7)
    )


def test_no_noise_is_infinite_and_an_unknown_mechanism_costs_its_pure_epsilon() -> None:
    assert math.isinf(approximate_epsilon({"content": Identity("vector").loss_for((3, 4))}, 3))
    other = Loss("pure", 0.5, "vector", None, "randomized_response", "1")
    assert approximate_epsilon({"content": other}, 10) == 5.0


def test_words_at_epsilon_0_add_nothing_and_take_no_share_of_delta() -> None:
    words, contour = RecognizedWords("0" * 16).loss_for(), LaplaceBall(2.0).loss_for((4,))
    assert approximate_epsilon({"words": words}, 1) == 0.0
    vectors = LaplaceSimplex(1.0).loss_for((350, 256))
    alone = approximate_epsilon({"content": vectors}, 350)
    assert approximate_epsilon({"words": words, "content": vectors}, 350) == alone
    assert approximate_epsilon({"words": words, "contour": contour}, 1) == 2.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    with pytest.raises(PrivacyError, match="delta"):
        approximate_epsilon({"content": LaplaceSimplex(1.0).loss_for((1, 2))}, 1, delta)


def hockey_stick(shift: float, threshold: float) -> float:
    """delta(c) of Laplace noise of scale 1 under a shift, exactly."""
    if threshold >= shift:
        return 0.0
    if threshold <= -shift:
        return 1 - math.exp(threshold)
    return 1 - math.exp((threshold - shift) / 2)


def losses_under_the_first(shift: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Privacy losses and their probabilities: two atoms and a density, cut into cells."""
    edges = np.linspace(-shift, shift, cells + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    mass = 0.5 * (np.exp(-(shift - edges[1:]) / 2) - np.exp(-(shift - edges[:-1]) / 2))
    return np.array([shift, -shift, *middle]), np.array([0.5, 0.5 * math.exp(-shift), *mass])


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.2, 1.8), (3.0, 3.0), (1.0, 9.0)])
def test_a_shift_over_two_coordinates_is_dominated_by_the_same_shift_in_one(a: float, b: float) -> None:
    """The lemma of docs/privacy.md, at every threshold, with the split divergence by quadrature."""
    losses, mass = losses_under_the_first(a, 4000)
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    for threshold in np.linspace(-(a + b) * 1.1, (a + b) * 1.1, 60):
        split = sum(m * hockey_stick(b, threshold - loss) for loss, m in zip(losses, mass, strict=True))
        assert split <= hockey_stick(a + b, threshold) + 1e-6
