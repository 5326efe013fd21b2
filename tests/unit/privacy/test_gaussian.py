"""Discrete Gaussian noise: its exact law, its bound in integers, its loss, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from voxveil.config import parse_params
from voxveil.config.features import ContentVariant
from voxveil.privacy import GaussianSphere, PublicNoise, SystemNoise, content_mechanism, norm2
from voxveil.privacy.audit.gaussian_audit import audit_sphere
from voxveil.privacy.discrete_gaussian import SIGMA_BITS, discrete_gaussian
from voxveil.runtime.errors import ParamsError, PrivacyError
from voxveil.runtime.seeding import stream

VECTORS = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 300)),
    elements=st.floats(-1e30, 1e30, allow_subnormal=True),
)


def seeded_words(*keys: str | int):  # type: ignore[no-untyped-def]
    generator = stream(31, *keys)
    return lambda count: generator.integers(0, 2**64, size=count, dtype=np.uint64)


class SeededSystemNoise(SystemNoise):
    """The exact path with a fixed stream of words: a statistical test always gives the same verdict."""

    def __init__(self, *keys: str | int) -> None:
        self._words = seeded_words(*keys)

    def words(self, count: int) -> np.ndarray:
        return self._words(count)


class LiteralSampler:
    """Algorithm 3 of Canonne, Kamath and Steinke, t = floor(sigma) + 1, one draw at a time, in fractions."""

    def __init__(self, *keys: str | int) -> None:
        self._generator = stream(32, *keys)

    def bernoulli(self, p: Fraction) -> bool:
        return int(self._generator.integers(0, p.denominator)) < p.numerator

    def bernoulli_exp(self, gamma: Fraction) -> bool:
        while gamma > 1:
            if not self.bernoulli_exp(Fraction(1)):
                return False
            gamma -= 1
        k = 1
        while self.bernoulli(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, t: int) -> int:
        while True:
            u = int(self._generator.integers(0, t))
            if not self.bernoulli_exp(Fraction(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            negative = bool(self._generator.integers(0, 2))
            if negative and u + t * v == 0:
                continue
            return -(u + t * v) if negative else u + t * v

    def gaussian(self, sigma: int) -> int:
        t = sigma + 1
        while True:
            y = self.laplace(t)
            if self.bernoulli_exp((abs(y) - Fraction(sigma**2, t)) ** 2 / (2 * sigma**2)):
                return y


def chi_square(draws: np.ndarray, sigma: float, reach: int) -> float:
    """p-value of draws against the exact law, tails pooled."""
    values = np.arange(-40 * reach, 40 * reach + 1)
    law = np.exp(-(values**2) / (2 * sigma**2))
    law /= law.sum()
    middle = np.abs(values) <= reach
    tail = (1 - law[middle].sum()) / 2
    counts = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    return float(stats.chisquare(counts, np.array([tail, *law[middle], tail]) * len(draws)).pvalue)


@pytest.mark.parametrize(("bits", "reach"), [(0, 2), (1, 4), (3, 16)])
def test_the_law_is_the_discrete_gaussian_law(bits: int, reach: int) -> None:
    draws = discrete_gaussian(200_000, seeded_words("law", bits), bits)
    assert chi_square(draws, 2**bits, reach) > 1e-4
    assert chi_square(draws, 1.03 * 2**bits, reach) < 1e-6  # a width wrong by 3 % is seen


def test_the_literal_sampler_agrees() -> None:
    literal = LiteralSampler("gaussian")
    assert chi_square(np.array([literal.gaussian(4) for _ in range(4000)]), 4.0, 9) > 1e-4
    assert chi_square(discrete_gaussian(40_000, seeded_words("fast"), 2), 4.0, 9) > 1e-4


def test_at_full_width_it_is_normal_far_into_the_tails() -> None:
    draws = discrete_gaussian(300_000, seeded_words("full")) / 2**SIGMA_BITS
    assert stats.kstest(draws, stats.norm.cdf).pvalue > 1e-3
    beyond = int((np.abs(draws) > 3.5).sum())
    assert stats.binomtest(beyond, len(draws), 2 * stats.norm.sf(3.5)).pvalue > 1e-4


def test_opendp_agrees() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    dp.enable_features("contrib")
    measurement = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=8.0
    )
    oracle = np.array(measurement([0] * 20_000))
    assert chi_square(oracle, 8.0, 18) > 1e-6
    assert stats.ks_2samp(oracle, discrete_gaussian(20_000, SystemNoise().words, 3)).pvalue > 1e-6


def test_many_draws_are_made_in_blocks_and_a_far_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxveil.privacy.discrete_gaussian._BLOCK", 1000)
    assert chi_square(discrete_gaussian(50_500, seeded_words("blocks"), 2), 4.0, 9) > 1e-4
    assert len(discrete_gaussian(0, SystemNoise().words)) == 0
    monkeypatch.setattr(
        "voxveil.privacy.discrete_gaussian.discrete_laplace",
        lambda count, rate, words: np.full(count, 2**31 + 2**SIGMA_BITS),
    )
    with pytest.raises(PrivacyError, match="nothing was released"):
        discrete_gaussian(1, SystemNoise().words)


@given(st.floats(1e-8, 1000.0))
def test_the_rho_spent_is_at_most_the_one_claimed_and_hardly_less(rho: float) -> None:
    radius = GaussianSphere(rho).radius()
    spent = Fraction((2 * radius) ** 2, 2 * 2 ** (2 * SIGMA_BITS))
    assert spent <= Fraction(rho)
    assert spent >= Fraction(rho) * (1 - Fraction(1, 400))
    assert radius < 2**31


@given(VECTORS, st.floats(1e-6, 1000.0))
@settings(max_examples=60, deadline=None)
def test_no_vector_leaves_the_sphere_in_integers(vectors: np.ndarray, rho: float) -> None:
    """As the noise finds it: with the draws taken for zero, what is left is the truncated vector."""
    mechanism = GaussianSphere(rho)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("voxveil.privacy.sphere.discrete_gaussian", lambda n, words: np.zeros(n, np.int64))
        bare = mechanism.noisy(vectors, SystemNoise()) * mechanism.radius()
    steps = [[round(x) for x in row] for row in bare.tolist()]
    for row, exact in zip(steps, (norm2(vectors) * mechanism.radius()).tolist(), strict=True):
        assert sum(x * x for x in row) <= mechanism.radius() ** 2
        for x, y in zip(row, exact, strict=True):
            assert abs(x) <= abs(y) + 1e-6
            assert abs(x - y) <= 1 + 1e-6 * abs(y)


def test_a_value_beyond_its_bound_releases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxveil.privacy.sphere.norm2", lambda value: value)
    with pytest.raises(PrivacyError, match="exceeds its sensitivity bound; nothing was released"):
        GaussianSphere(1.0).release(np.full((1, 4), 0.6), SystemNoise())


def test_releases_are_multiples_of_one_step_whatever_the_value() -> None:
    mechanism = GaussianSphere(0.3)
    for value in (np.eye(4), np.full((4, 4), 0.1), np.zeros((4, 4))):
        steps = mechanism.noisy(value, SystemNoise()) * mechanism.radius()
        assert np.abs(steps - np.round(steps)).max() < 1e-6
    seeded = mechanism.noisy(np.full((4, 4), 0.1), PublicNoise(1)) * mechanism.radius()
    assert np.abs(seeded - np.round(seeded)).max() > 1e-3  # the check sees the difference


@pytest.mark.parametrize("noise", [SystemNoise(), PublicNoise(1, "scale")])
def test_the_noise_has_the_stated_width_in_every_dimension(noise: SystemNoise | PublicNoise) -> None:
    for size in (2, 64):
        mechanism = GaussianSphere(0.5)
        value = np.tile(np.eye(1, size), (40_000 // size, 1))
        added = mechanism.noisy(value, noise) - value
        assert added.std() == pytest.approx(2.0, rel=0.02)
        assert mechanism.scale() == 2.0


def test_its_loss_is_a_rho_and_no_epsilon() -> None:
    mechanism = content_mechanism(ContentVariant("gaussian", rho=0.25))
    value = np.random.default_rng(1).normal(size=(7, 16))
    released = mechanism.release(value, SystemNoise())
    assert np.abs(released.value).sum(axis=1) == pytest.approx(1.0)
    loss = released.loss
    assert (loss.measure, loss.rho, loss.epsilon, loss.unit) == ("zcdp", 0.25, math.inf, "vector")
    assert (loss.sensitivity, loss.mechanism, loss.version, loss.note) == (2.0, "gaussian_l2", "2", "")
    assert loss == mechanism.loss_for(value.shape)
    seeded = mechanism.release(value, PublicNoise(1, "a"))
    assert "no privacy claim" in seeded.loss.note and seeded.loss.version == "1"
    assert (seeded.value == mechanism.release(value, PublicNoise(1, "a")).value).all()
    assert (released.value != mechanism.release(value, SystemNoise()).value).any()


@pytest.mark.parametrize("rho", [0.0, -1.0, math.nan, math.inf, 1001.0, 1e-9, "1", None, True])
def test_a_rho_that_is_none_is_refused(rho: object) -> None:
    with pytest.raises(PrivacyError, match="gaussian_l2: rho must"):
        GaussianSphere(rho)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.zeros(3), np.full((2, 2), np.nan)])
def test_what_is_no_vector_is_refused(value: np.ndarray) -> None:
    with pytest.raises(PrivacyError, match="gaussian_l2"):
        GaussianSphere(1.0).release(value, SystemNoise())


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"mechanism": "gaussian"}, r"v\.rho: must be above 0"),
        ({"mechanism": "gaussian", "rho": 0.1, "epsilon": 1}, r"v\.epsilon: .* no pure epsilon but a rho"),
        ({"mechanism": "laplace", "epsilon": 1, "rho": 0.1}, r"v\.rho: is of the mechanism gaussian alone"),
    ],
)
def test_parameters_keep_the_two_apart(variant: dict[str, object], said: str) -> None:
    with pytest.raises(ParamsError, match=said):
        parse_params({"content_variants": {"plain": {}, "v": variant}})


@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_the_audit_passes_the_right_mechanism_and_catches_half_the_noise(rho: float) -> None:
    findings = audit_sphere(GaussianSphere(rho), rho, releases=60_000, noise=SeededSystemNoise("right"))
    assert [f.verdict for f in findings] == ["consistent"] * 3
    bound = findings[0].bound
    assert bound is not None and 0 < bound < findings[0].epsilon
    halved = audit_sphere(GaussianSphere(4 * rho), rho, releases=60_000, noise=SeededSystemNoise("half"))
    # What is released has lost its length, so the second test, of two neighbours, need not see it.
    assert (halved[0].verdict, halved[2].verdict) == ("violation", "violation")
