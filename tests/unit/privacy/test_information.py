"""The information bounds against their published figures and against a channel computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.privacy import Identity, LaplaceBall, LaplaceCube, LaplaceSimplex
from voxveil.privacy.audit.information import (
    ball_information,
    bits,
    channel_information,
    cube_information,
    fano_accuracy_limit,
    laplace_divergence,
    odds_accuracy_limit,
    passing_line,
    pinsker_accuracy_limit,
    utterance_information,
    vector_information,
)
from voxveil.runtime.errors import PrivacyError


@pytest.mark.parametrize(("epsilon", "passed"), [(1, 0.154), (3, 1.04), (10, 5.78)])
def test_a_frame_through_laplace_noise(epsilon: float, passed: float) -> None:
    assert bits(ball_information(epsilon)) == pytest.approx(passed, rel=0.005)


@pytest.mark.parametrize(("epsilon", "passed"), [(1, 0.178), (3, 1.45), (10, 9.66)])
def test_any_locally_private_channel(epsilon: float, passed: float) -> None:
    assert bits(channel_information(epsilon)) == pytest.approx(passed, rel=0.005)


@pytest.mark.parametrize(("epsilon", "passed"), [(1, 0.00002), (10, 0.002), (100, 0.2)])
def test_the_pitch_cube(epsilon: float, passed: float) -> None:
    assert cube_information(epsilon, 16 * 350) == pytest.approx(passed, rel=0.15)


def test_one_hot_vectors_reach_the_bound_and_dense_ones_pass_139_times_less() -> None:
    one_hot = vector_information(np.eye(256), 1.0)
    dense = vector_information(np.random.default_rng(1).normal(size=(2000, 256)), 1.0)
    assert one_hot == pytest.approx(ball_information(1.0))
    assert dense == pytest.approx(0.0008, abs=0.00005)
    assert one_hot / dense == pytest.approx(139, rel=0.03)


@given(st.floats(1e-3, 50))
@settings(deadline=None)
def test_the_bounds_are_in_order(epsilon: float) -> None:
    assert 0 < ball_information(epsilon) <= channel_information(epsilon) <= epsilon
    assert cube_information(epsilon, 1) == ball_information(epsilon)
    assert cube_information(epsilon, 100) <= ball_information(epsilon)


@pytest.mark.parametrize("t", [0.05, 0.5, 1.5, 5.0])
def test_g_is_the_divergence_integrated(t: float) -> None:
    y = np.linspace(-60, 60, 2_000_001)
    p, q = 0.5 * np.exp(-np.abs(y - t)), 0.5 * np.exp(-np.abs(y))
    literal = float((p * np.log(p / q)).sum() * (y[1] - y[0]))
    assert laplace_divergence(t) == pytest.approx(literal, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 10.0])
def test_the_capacity_of_a_binary_input_stays_below_the_bounds(epsilon: float) -> None:
    """+e1 or -e1, equally likely, through Lap(2 / epsilon), integrated."""
    y = np.linspace(-1 - 80 / epsilon, 1 + 80 / epsilon, 400_001)
    b = 2 / epsilon
    laws = [np.exp(-np.abs(y - x) / b) / (2 * b) for x in (-1, 1)]
    mixture = sum(laws) / 2
    passed = sum(float((p * np.log(p / mixture)).sum()) for p in laws) / 2 * (y[1] - y[0])
    assert passed <= ball_information(epsilon)
    assert passed <= channel_information(epsilon)


def test_an_utterance_adds_its_vectors_and_its_pitch() -> None:
    losses = {
        "pitch": LaplaceCube(1.0).loss_for((16, 350)),
        "content": LaplaceSimplex(1.0).loss_for((350, 256)),
    }
    expected = 350 * ball_information(1.0) + cube_information(1.0, 5600)
    assert utterance_information(losses, 350) == pytest.approx(expected)
    assert "53.8 bit" in passing_line(losses, 350)
    open_losses = {**losses, "content": Identity("vector").loss_for((350, 256))}
    assert math.isinf(utterance_information(open_losses, 350))
    assert "everything" in passing_line(open_losses, 350)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0])
def test_a_contour_passes_what_the_ball_lets_through(epsilon: float) -> None:
    """Pitch as a few coefficients was given the bound of any mechanism of its epsilon."""
    loss = LaplaceBall(epsilon).loss_for((24,))
    passed = utterance_information({"pitch": loss}, 350)
    assert passed == ball_information(epsilon) < channel_information(epsilon)
    # Points inside the ball pass less, whatever their number of coefficients: literal sums at random.
    points = np.random.default_rng(2).laplace(size=(200, 24))
    points /= np.abs(points).sum(axis=1, keepdims=True)
    sums = [sum(laplace_divergence(abs(x) * epsilon / 2) for x in point) for point in points]
    assert max(sums) < passed


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(100.0, "425,000 bit"), (10.0, "34,700 bit"), (1.0, "924 bit"), (1e-4, "0.0000108 bit")],
)
def test_figures_are_printed_plainly(epsilon: float, words: str) -> None:
    """A total of 1,720 bit was printed as 1.72e+03 bit."""
    line = passing_line({"content": LaplaceSimplex(epsilon).loss_for((6010, 256))}, 6010)
    assert words in line
    assert "e+" not in line and "e-" not in line


def test_accuracy_limits() -> None:
    assert pinsker_accuracy_limit(0.00002, 16) == pytest.approx(1 / 16 + 0.00316, abs=1e-4)
    assert odds_accuracy_limit(1e-9, 20) == pytest.approx(1 / 20)
    assert odds_accuracy_limit(701.0, 20) == 1.0
    assert odds_accuracy_limit(math.log(19), 20) == pytest.approx(0.5)
    assert fano_accuracy_limit(0.0, 1000) == pytest.approx(math.log(2) / math.log(1000))
    assert fano_accuracy_limit(100.0, 1000) == 1.0


def test_nonsense_is_refused() -> None:
    for call in (ball_information, channel_information):
        with pytest.raises(PrivacyError, match="epsilon"):
            call(0.0)
    with pytest.raises(PrivacyError, match="candidates"):
        fano_accuracy_limit(1.0, 1)
    with pytest.raises(PrivacyError, match="vector"):
        utterance_information({}, 0)
