"""Each mechanism against a slow literal version, its bound and its law."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from voxveil.config.features import ContentVariant, PitchVariant
from voxveil.privacy import (
    Identity,
    LaplaceCube,
    LaplaceSimplex,
    PublicNoise,
    SystemNoise,
    content_mechanism,
    norm1,
    pitch_mechanism,
)
from voxveil.privacy.discrete import discrete_laplace, rate_for, to_grid
from voxveil.privacy.mechanisms import CUBE_BITS, SIMPLEX_BITS
from voxveil.runtime.errors import PrivacyError

VECTORS = arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 40)),
    elements=st.floats(-1e30, 1e30, allow_subnormal=True),
)


def literal_norm1(row: list[float]) -> list[float]:
    largest = max(abs(x) for x in row)
    if largest == 0:
        return [1.0] + [0.0] * (len(row) - 1)
    scaled = [x / largest for x in row]
    total = math.fsum(abs(x) for x in scaled)
    return [x / total for x in scaled]


@given(VECTORS)
@settings(deadline=None)
def test_norm1_is_the_literal_one_and_lies_on_the_sphere(vectors: np.ndarray) -> None:
    result = norm1(vectors)
    assert result == pytest.approx(np.array([literal_norm1(list(row)) for row in vectors]), abs=1e-12)
    assert np.abs(result).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_a_zero_vector_is_one_fixed_unit_vector() -> None:
    assert norm1(np.zeros((2, 3))).tolist() == [[1, 0, 0], [1, 0, 0]]
    assert norm1(np.full((1, 2), 5e-324)).tolist() == [[0.5, 0.5]]


@given(VECTORS, st.floats(0.05, 1000))
@settings(max_examples=50, deadline=None)
def test_released_vectors_have_l1_norm_1(vectors: np.ndarray, epsilon: float) -> None:
    for noise in (SystemNoise(), PublicNoise(1)):
        released = LaplaceSimplex(epsilon).release(vectors, noise)
        assert np.abs(released.value).sum(axis=1) == pytest.approx(1.0, abs=1e-9)
        assert released.loss.sensitivity == 2.0


@given(VECTORS, st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_no_two_vectors_differ_by_more_than_the_sensitivity(vectors: np.ndarray, seed: int) -> None:
    """In integers, as they are when the noise is added: any row against any other."""
    other = np.random.default_rng(seed).laplace(size=vectors.shape)
    left, right = (to_grid(norm1(value), SIMPLEX_BITS) for value in (vectors, other))
    assert np.abs(left).sum(axis=1).max() <= 2**SIMPLEX_BITS
    assert np.abs(left - right).sum(axis=1).max() <= 2 * 2**SIMPLEX_BITS


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=st.floats(0, 1)))
@settings(deadline=None)
def test_no_two_cubes_differ_by_more_than_the_sensitivity(cube: np.ndarray) -> None:
    steps = to_grid(cube, CUBE_BITS)
    for corner in (0, 2**CUBE_BITS):
        assert np.abs(steps - corner).sum() <= cube.size * 2**CUBE_BITS
    assert LaplaceCube(1.0).loss_for(cube.shape).sensitivity == cube.size


@pytest.mark.parametrize("size", [2, 256, 4096])
def test_the_sensitivity_is_2_whatever_the_dimension(size: int) -> None:
    assert LaplaceSimplex(3.0).loss_for((7, size)).sensitivity == 2.0
    assert LaplaceSimplex(3.0).scale() == 2.0 / 3.0
    left, right = np.zeros((2, 1, size))
    left[0, 0], right[0, 1] = 5.0, 5.0
    assert np.abs(norm1(left) - norm1(right)).sum() == 2.0


def test_the_simplex_release_is_the_literal_formula() -> None:
    epsilon, value = 3.0, np.random.default_rng(1).normal(size=(4, 6))
    noise = PublicNoise(5).laplace((4, 6), 2.0 / epsilon)
    literal = [
        literal_norm1([x + n for x, n in zip(literal_norm1(list(row)), draw, strict=True)])
        for row, draw in zip(value, noise, strict=True)
    ]
    assert LaplaceSimplex(epsilon).release(value, PublicNoise(5)).value == pytest.approx(np.array(literal))


def test_the_cube_release_is_the_literal_formula() -> None:
    epsilon, value = 3.0, np.random.default_rng(1).random((2, 5))
    noise = PublicNoise(5).laplace((2, 5), 2 * 5 / epsilon)
    literal = [[value[c, k] + noise[c, k] for k in range(5)] for c in range(2)]
    assert LaplaceCube(epsilon).release(value, PublicNoise(5)).value.tolist() == literal


def naive_grid_laplace(step_value: float, epsilon: float, sensitivity: float, bits: int) -> float:
    """Truncate, then add a two-sided geometric number of steps by inversion."""
    ratio = math.exp(-epsilon / (sensitivity * 2**bits))
    magnitude = [math.floor(math.log(1.0 - random.random()) / math.log(ratio)) for _ in range(2)]
    return (math.trunc(step_value * 2**bits) + magnitude[0] - magnitude[1]) / 2**bits


def test_secret_noise_has_the_law_of_a_naive_sampler() -> None:
    """A difference of two geometric numbers is a discrete Laplace number."""
    random.seed(3)
    cube = LaplaceCube(2.0).release(np.full((50, 100), 0.3), SystemNoise()).value.ravel()
    naive = [naive_grid_laplace(0.3, 2.0, 5000, CUBE_BITS) for _ in range(5000)]
    assert stats.ks_2samp(cube, naive).pvalue > 1e-6
    simplex = LaplaceSimplex(1.0).noisy(np.full((20, 256), 1.0), SystemNoise()).ravel()
    naive = [naive_grid_laplace(1 / 256, 1.0, 2, SIMPLEX_BITS) for _ in range(5120)]
    assert stats.ks_2samp(simplex, naive).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 100.0])
def test_secret_noise_has_the_stated_scale(epsilon: float) -> None:
    simplex = LaplaceSimplex(epsilon).noisy(np.eye(300), SystemNoise()) - np.eye(300)
    assert np.abs(simplex).mean() == pytest.approx(2 / epsilon, rel=0.02)
    cube = LaplaceCube(epsilon).release(np.full((16, 350), 0.25), SystemNoise()).value - 0.25
    assert np.abs(cube).mean() == pytest.approx(16 * 350 / epsilon, rel=0.08)


def test_every_secret_release_is_a_multiple_of_one_fixed_power_of_two() -> None:
    for value in (0.1, 1 / 3, 1.0):
        cube = LaplaceCube(5.0).release(np.full((10, 100), value), SystemNoise()).value * 2**CUBE_BITS
        assert np.array_equal(cube, np.round(cube))
        simplex = LaplaceSimplex(5.0).noisy(np.full((10, 3), value), SystemNoise()) * 2**SIMPLEX_BITS
        assert np.array_equal(simplex, np.round(simplex))
    seeded = LaplaceCube(5.0).release(np.full((10, 100), 0.1), PublicNoise(1)).value * 2**CUBE_BITS
    assert not np.array_equal(seeded, np.round(seeded))  # the check sees the difference


def test_releases_of_0_and_of_1_reach_the_same_values() -> None:
    """B1: which values can occur says nothing of the input.

    C = K = 1 many times, through the cube's own grid; epsilon so high that few values occur.
    """
    epsilon, sources = 2.0**15, (0.0, 1.0)
    rate = rate_for(epsilon, 2**CUBE_BITS)
    zeros, ones = (
        set(to_grid(np.full(100_000, x), CUBE_BITS) + discrete_laplace(100_000, rate, SystemNoise().words))
        for x in sources
    )
    shifted = {x - 2**CUBE_BITS for x in ones}
    assert len(zeros & shifted) > 0.8 * min(len(zeros), len(shifted))
    assert len(zeros) > 20


@pytest.mark.parametrize("kind", [LaplaceCube, LaplaceSimplex])
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
def test_an_epsilon_that_is_none_is_refused(kind: type, epsilon: object) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        kind(epsilon)


def test_an_epsilon_that_is_no_noise_or_out_of_range_is_refused_when_released() -> None:
    with pytest.raises(PrivacyError, match="identity"):
        LaplaceSimplex(1e13).release(np.eye(2), SystemNoise())
    with pytest.raises(PrivacyError, match="too small"):
        LaplaceSimplex(1e-13).release(np.eye(2), SystemNoise())
    assert LaplaceSimplex(1e6).release(np.eye(2), SystemNoise()).loss.epsilon == 1e6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "mechanism", [LaplaceCube(1.0), LaplaceSimplex(1.0), Identity("vector")], ids=lambda m: m.name
)
def test_values_that_are_not_finite_are_refused(mechanism: LaplaceCube, bad: float) -> None:
    value = np.full((3, 4), 0.5)
    value[1, 2] = bad
    with pytest.raises(PrivacyError, match="NaN or infinite"):
        mechanism.release(value, SystemNoise())


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.zeros(3), np.zeros((2, 3, 4))])
def test_wrong_shapes_are_refused(value: np.ndarray) -> None:
    for mechanism in (LaplaceCube(1.0), LaplaceSimplex(1.0)):
        with pytest.raises(PrivacyError, match="array, got shape"):
            mechanism.release(value, SystemNoise())


@pytest.mark.parametrize("value", [-1e-9, 1.0 + 1e-9, 3.0])
def test_a_cube_that_is_none_is_refused_not_clipped(value: float) -> None:
    with pytest.raises(PrivacyError, match=r"\[0, 1\]"):
        LaplaceCube(1.0).release(np.full((1, 1), value), SystemNoise())


def test_the_variant_names_the_mechanism() -> None:
    assert pitch_mechanism(PitchVariant("laplace", 3.0)) == LaplaceCube(3.0)
    assert content_mechanism(ContentVariant("laplace", 3.0)) == LaplaceSimplex(3.0)
    assert pitch_mechanism(PitchVariant()).loss_for((16, 10)).unit == "utterance"
    assert content_mechanism(ContentVariant()).loss_for((10, 256)).unit == "vector"


def test_halving_epsilon_doubles_the_noise_and_halves_the_loss() -> None:
    value = np.full((4, 50), 0.5)
    full, half = (LaplaceCube(epsilon).release(value, PublicNoise(1)) for epsilon in (2.0, 1.0))
    assert half.value - 0.5 == pytest.approx(2 * (full.value - 0.5))
    assert half.loss.epsilon == full.loss.epsilon / 2


def test_a_loss_is_known_before_anything_is_computed() -> None:
    value = np.full((4, 50), 0.5)
    for mechanism in (LaplaceCube(2.0), LaplaceSimplex(2.0), Identity("vector")):
        assert mechanism.loss_for(value.shape) == mechanism.release(value, SystemNoise()).loss
