"""zCDP: what a rho stands for, and that it never mixes with a pure epsilon."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from voxveil.privacy import Entry, GaussianSphere, Identity, LaplaceCube, Loss, compose, utterance_loss
from voxveil.privacy.audit.accounting import approximate_epsilon
from voxveil.privacy.audit.information import utterance_information
from voxveil.privacy.record import Release, parse_release
from voxveil.privacy.zcdp import DELTA, approximate, pure_rho
from voxveil.runtime.errors import InputError, PrivacyError

RHO = Loss("zcdp", math.inf, "vector", 2.0, "gaussian_l2", "2", rho=0.01)
PURE = Loss("pure", 3.0, "utterance", 16.0, "laplace_cube", "2")
OPEN = Identity("utterance").loss_for((1, 1))


def gaussian_delta(rho: float, epsilon: float) -> float:
    """delta of a Gaussian of this rho at epsilon, exactly (Balle and Wang 2018)."""
    shift = math.sqrt(2 * rho)
    a, b = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return float(stats.norm.cdf(a) - math.exp(epsilon + stats.norm.logcdf(b)))


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 3.5, 100.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_the_epsilon_of_a_rho_holds_for_a_gaussian_and_is_hardly_too_large(rho: float, delta: float) -> None:
    epsilon = approximate(rho, delta)
    assert gaussian_delta(rho, epsilon) <= delta
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke's, looser
    literal = min(
        a * rho + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
        for a in 1 + np.geomspace(1e-4, 1e6, 5000)
    )
    assert epsilon <= max(literal, 0.0) * (1 + 1e-6) + 1e-9
    if epsilon > 0.1:
        assert gaussian_delta(rho, 0.7 * epsilon) > delta


def test_a_pure_epsilon_is_half_its_square() -> None:
    """The Renyi divergences of randomized response, the worst pair of a pure epsilon, stay below."""
    for epsilon in (0.1, 1.0, 5.0):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        for alpha in (1.5, 2.0, 10.0):
            total = p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)
            assert math.log(total) / (alpha - 1) <= alpha * pure_rho(epsilon)
    assert math.isinf(pure_rho(math.inf))


def test_vectors_add_and_pure_pitch_counts_half_its_square() -> None:
    total = compose(PURE, utterance_loss(RHO, 350))
    assert (total.measure, total.unit, total.epsilon) == ("zcdp", "utterance", math.inf)
    assert total.rho == pytest.approx(4.5 + 3.5)
    assert total.amount == "zCDP rho 8" and not total.unbounded
    assert compose(total, total).rho == pytest.approx(16.0)
    assert compose(PURE, PURE).rho is None and compose(PURE, PURE).epsilon == 6.0


def test_without_noise_on_one_stream_nothing_is_promised() -> None:
    total = compose(OPEN, utterance_loss(RHO, 350))
    assert total.unbounded and (total.measure, total.rho) == ("pure", None)


@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=6), st.floats(1e-6, 10.0))
@settings(deadline=None)
def test_a_rho_is_never_added_to_an_epsilon(epsilons: list[float], rho: float) -> None:
    """By type, in any order: the sum is a rho and the epsilon stays infinite."""
    losses = [Loss("pure", e, "utterance", 2.0, "x", "1") for e in epsilons]
    mixed = compose(*losses, Loss("zcdp", math.inf, "utterance", 2.0, "y", "1", rho=rho))
    assert math.isinf(mixed.epsilon)
    assert mixed.rho == pytest.approx(rho + sum(e * e / 2 for e in epsilons))


@pytest.mark.parametrize(
    ("measure", "epsilon", "rho"),
    [
        ("zcdp", math.inf, None),
        ("zcdp", 3.0, 0.1),
        ("zcdp", math.inf, 0.0),
        ("zcdp", math.inf, -1.0),
        ("zcdp", math.inf, math.inf),
        ("zcdp", math.inf, math.nan),
        ("zcdp", math.inf, "0.1"),
        ("zcdp", math.inf, True),
        ("pure", 3.0, 0.1),
        ("pure", math.inf, 0.1),
    ],
)
def test_a_loss_of_two_measures_is_refused(measure: str, epsilon: float, rho: object) -> None:
    with pytest.raises(PrivacyError, match="rho|zcdp"):
        Loss(measure, epsilon, "utterance", 2.0, "x", "1", rho=rho)  # type: ignore[arg-type]


def entry(content: Loss, pitch: Loss = PURE, vectors: int = 100) -> Entry:
    return Entry("a", "0" * 64, vectors, {"pitch": pitch, "content": content}, "61")


def test_a_record_holds_both_and_comes_back() -> None:
    release = Release("0" * 32, "release", "anon", "2026-01-01T00:00:00Z", (entry(RHO),))
    record = json.loads(json.dumps(release.to_json(), allow_nan=False))
    assert (record["epsilon_max"], record["rho_max"]) == ("inf", 5.5)
    assert record["entries"][0]["utterance"]["rho"] == 5.5
    assert record["entries"][0]["losses"]["content"]["epsilon"] == "inf"
    assert "rho" not in record["entries"][0]["losses"]["pitch"]
    content = json.dumps(record).encode()
    assert parse_release(content, "x").to_json() == record
    with pytest.raises(InputError, match="contradict"):
        parse_release(content.replace(b'"rho_max": 5.5', b'"rho_max": 0.1'), "x")
    with pytest.raises(InputError, match="rho"):
        parse_release(content.replace(b'"rho": 0.01', b'"rho": -1'), "x")


def test_a_pure_record_is_as_it_was() -> None:
    """No register that was written before may change its bytes."""
    pure = entry(Loss("pure", 2.0, "vector", 2.0, "laplace_l1", "2"))
    record = Release("0" * 32, "release", "anon", "2026-01-01T00:00:00Z", (pure,)).to_json()
    assert "rho" not in json.dumps(record)
    assert pure.rho == pytest.approx(4.5 + 100 * 2.0)  # by stream and vector, not (203)^2 / 2


def test_release_require_tells_a_rho_from_an_epsilon() -> None:
    release = Release("0" * 32, "release", "anon", "2026-01-01T00:00:00Z", (entry(RHO),))
    with pytest.raises(PrivacyError, match=r"content zCDP rho 0.01 per vector"):
        release.require("a", {"pitch": PURE, "content": OPEN}, 100)
    release.require("a", {"pitch": PURE, "content": RHO}, 100)


def test_the_epsilon_at_a_delta_of_an_utterance_takes_the_streams_by_type() -> None:
    cube = LaplaceCube(0.5).loss_for((4, 100))
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    alone = approximate_epsilon({"content": RHO}, 350, 1e-6)
    assert alone == pytest.approx(approximate(3.5))
    both = approximate_epsilon({"content": RHO, "pitch": cube}, 350, 1e-6)
    assert alone < both < alone + 1.0
    # Never more than the column of the totals says, which adds rhos.
    assert both <= approximate(0.125 + 3.5)
    assert math.isinf(approximate_epsilon({"content": RHO, "pitch": OPEN}, 350))


def test_information_is_a_quarter_of_rho_and_reached_by_no_signal() -> None:
    loss = GaussianSphere(0.5).loss_for((1, 16))
    assert utterance_information({"content": loss}, 10) == pytest.approx(10 * 0.5 / 4)
    # The capacity of a Gaussian channel of 16 entries and power 1, sigma^2 = 2 / rho.
    assert 16 / 2 * math.log1p(1 / (16 * 4)) < 0.5 / 4
    other = Loss("zcdp", math.inf, "vector", 2.0, "another", "1", rho=0.5)
    assert utterance_information({"content": other}, 10) == pytest.approx(5.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    with pytest.raises(PrivacyError, match="delta"):
        approximate(1.0, delta)
    assert math.isinf(approximate(math.inf, DELTA))
