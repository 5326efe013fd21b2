"""Fast code against the literal definitions, on whatever hypothesis thinks of."""

from __future__ import annotations

import math

import metric_oracles as oracle
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from voxveil.metrics import betabinomial, disclosure, eer, linkability, population, ranks, zebra
from voxveil.metrics.cllr import cllr, cllr_min
from voxveil.metrics.data import CountTable, RankSet
from voxveil.metrics.eps_gauss import eps_max_gauss
from voxveil.metrics.eps_t import eps_max_t, fit_student, fit_t, student_logpdf
from voxveil.metrics.pav import pav, smooth

# Few distinct values make ties, many make none.
scores = st.one_of(
    st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30),
    st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 6) + 0.0), min_size=1, max_size=30),
)
quick = settings(max_examples=60, deadline=None)


@quick
@given(scores, scores)
def test_pav_and_laplace(target, nontarget):
    table = CountTable.from_scores(target, nontarget)
    plain = pav(table)
    for bins, blocks in (
        (plain, oracle.pav_blocks(target, nontarget)),
        (smooth(plain), oracle.zebra_blocks(target, nontarget)),
    ):
        found = list(zip(bins.low, bins.high, bins.target, bins.nontarget))
        assert found == [tuple(b) for b in blocks]
        llrs = [oracle.block_llr(b, len(target), len(nontarget)) for b in blocks]
        assert bins.llr == pytest.approx(llrs, abs=1e-12)
        assert np.all(np.diff(bins.llr) > 0)


@quick
@given(scores, scores)
def test_error_rates(target, nontarget):
    table = CountTable.from_scores(target, nontarget)
    assert eer.eer(table) == pytest.approx(oracle.eer(target, nontarget), abs=1e-12)
    assert eer.eer_rocch(pav(table)) == pytest.approx(oracle.eer_rocch(target, nontarget), abs=1e-9)
    for rate in (0.001, 0.01, 0.29, 0.5):
        assert eer.tpr_at_fpr(table, rate) == pytest.approx(oracle.tpr_at_fpr(target, nontarget, rate))


@quick
@given(scores, scores)
def test_costs(target, nontarget):
    table = CountTable.from_scores(target, nontarget)
    assert cllr(table) == pytest.approx(oracle.cllr(target, nontarget), abs=1e-10)
    assert cllr_min(pav(table)) == pytest.approx(
        oracle.cllr(*oracle.score_llrs(target, nontarget)), abs=1e-10
    )


@settings(max_examples=25, deadline=None)
@given(scores, scores)
def test_expected_disclosure_is_the_integral(target, nontarget):
    got = zebra.expected_disclosure(pav(CountTable.from_scores(target, nontarget)))
    assert got == pytest.approx(oracle.expected_disclosure(target, nontarget), abs=1e-8)
    assert 0 <= got <= zebra.EXPECTED_DISCLOSURE_MAX + 1e-12


@pytest.mark.parametrize("llr", [0.0, 1e-12, -1e-7, 0.0999, 0.1001, -0.1, 3.0, -40.0, 400.0, -800.0])
def test_closed_form_of_the_integral(llr):
    """The series around 0, the middle and the tails agree with quadrature in mpmath-like precision."""
    from scipy.integrate import quad

    r = math.exp(min(llr, 300.0))
    if llr <= 300:
        area, _ = quad(lambda p: p * math.log1p(r * (1 - p) / p), 0, 1, epsabs=1e-13, epsrel=1e-13, limit=400)
        assert zebra._g(np.array([llr]))[0] + 0.25 == pytest.approx(area, rel=1e-8, abs=1e-10)
    else:
        assert zebra._g(np.array([llr]))[0] == pytest.approx(llr / 2 - 0.75)


@quick
@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=60), st.lists(st.floats(-5, 5), min_size=2, max_size=60)
)
def test_linkability(target, nontarget):
    assume(max(*target, *nontarget) - min(*target, *nontarget) > 1e-6)
    table = CountTable.from_scores(target, nontarget)
    n = len(target)
    expected = oracle.linkability(target, nontarget, min(max(n // 10, 10), 100))
    assert linkability.linkability(table) == pytest.approx(expected, abs=1e-9)
    if n >= 10:
        published = oracle.linkability(target, nontarget, min(n // 10, 100), trapezoid=True)
        assert linkability.linkability_vpc(table) == pytest.approx(published, abs=1e-9)


@quick
@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=30), st.lists(st.floats(-5, 5), min_size=3, max_size=30)
)
def test_gauss_maximum_is_the_maximum_over_scores(target, nontarget):
    assume(min(np.std(target), np.std(nontarget)) > 1e-3)
    got = eps_max_gauss(CountTable.from_scores(target, nontarget))
    assert got == pytest.approx(oracle.eps_max_gauss(target, nontarget), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("seed", range(11))
def test_t_fit_is_the_maximum_likelihood(seed):
    rng = np.random.default_rng(seed)
    draw = [
        lambda n: rng.standard_t(1.5, n),
        lambda n: rng.standard_t(4, n) * 3 + 7,
        lambda n: rng.normal(5, 1e-3, n),
        lambda n: np.round(rng.standard_t(3, n), 1),
        lambda n: rng.uniform(0, 1, n),
        lambda n: np.concatenate([rng.normal(0, 1, n - 3), [30.0, -25.0, 60.0]]),
        lambda n: rng.exponential(1, n),
        lambda n: rng.standard_cauchy(n),
        lambda n: 1e6 + 1e-2 * rng.normal(size=n),
        lambda n: np.concatenate([rng.normal(0, 1, 13), rng.normal(8, 0.1, 7)]),
        lambda n: rng.exponential(1, 3) ** 2,
    ][seed]
    values = draw(300)
    x, counts = np.unique(values, return_counts=True)
    fit = fit_student(x, counts.astype(float), "target")
    assert fit.nll == pytest.approx(oracle.t_nll(values, fit.df, fit.loc, fit.scale), rel=1e-9, abs=1e-7)
    assert fit.nll <= oracle.t_fit_nll(values) + 1e-4


def test_t_fit_on_grouped_data_is_that_of_all_scores():
    """Above 4096 scores the search runs on groups; the polish must end at the same maximum."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.standard_t(6, 30_000))
    fit = fit_student(x, np.ones(x.size), "nontarget")
    df, loc, scale = stats.t.fit(x, fit.df, loc=fit.loc, scale=fit.scale)
    assert fit.nll <= oracle.t_nll(x, df, loc, scale) + 1e-6
    for step in (1e-4, -1e-4):  # no neighbour is better
        moved = (fit.inverse_df + step, fit.loc, fit.scale), (fit.inverse_df, fit.loc + step, fit.scale)
        for eta, loc, scale in (*moved, (fit.inverse_df, fit.loc, fit.scale * (1 + step))):
            assert -student_logpdf(x, eta, loc, scale).sum() >= fit.nll - 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_t_maximum_is_the_maximum_over_scores(seed):
    rng = np.random.default_rng(seed)
    table = CountTable.from_scores(
        rng.standard_t(3, 80) + seed, rng.standard_t(2 + seed, 200) * (1 + seed / 3)
    )
    pair = fit_t(table)
    assert eps_max_t(table, pair) == pytest.approx(np.abs(pair.llr(table.values)).max(), rel=1e-12)


@st.composite
def rank_sets(draw):
    n, n_inputs = draw(st.integers(2, 7)), draw(st.integers(1, 12))
    values = st.integers(0, 3).map(float) if draw(st.booleans()) else st.floats(-1, 1)
    matrix = draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=n_inputs, max_size=n_inputs))
    own = draw(st.lists(st.integers(0, n - 1), min_size=n_inputs, max_size=n_inputs))
    return matrix, own


@quick
@given(rank_sets())
def test_ranks_and_disclosure(case):
    matrix, own = case
    given_set = RankSet.from_labels(np.array(matrix), own, np.arange(len(matrix[0])))
    found = ranks.rank_inputs(given_set)
    histogram = found.histogram()
    assert histogram == pytest.approx(oracle.rank_weights(matrix, own), abs=1e-9)
    gamma = histogram / histogram.sum()
    assert float(disclosure.mean_disclosure(gamma)) == pytest.approx(
        max(0, oracle.mean_bits(gamma)), abs=1e-9
    )
    identity = np.arange(given_set.n_references)[None]
    assert ranks.permuted_histograms(given_set, identity)[0] == pytest.approx(histogram, abs=1e-9)
    turned = np.roll(identity, 1, axis=1)
    moved = [int(turned[0, s]) for s in own]
    assert ranks.permuted_histograms(given_set, turned)[0] == pytest.approx(
        oracle.rank_weights(matrix, moved), abs=1e-9
    )
    speakers, parts = ranks.speaker_histograms(found)
    assert parts.sum(0) == pytest.approx(histogram, abs=1e-9)
    assert speakers.tolist() == sorted(set(own))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=3, max_size=9))
def test_betabinomial_likelihood(histogram):
    h = np.array(histogram, dtype=float)
    assume(h.sum() > 0)
    fit = betabinomial.fit_betabinomial(h[None])
    assert fit.gamma[0].sum() == pytest.approx(1, abs=1e-9)
    seen = h > 0
    nll = -(h[seen] @ np.log(fit.gamma[0][seen]))
    assert nll <= oracle.betabinomial_fit_nll(h) + 1e-3
    if fit.limit[0] == "":
        assert nll == pytest.approx(oracle.betabinomial_nll(h, fit.alpha[0], fit.beta[0]), abs=1e-8)


def test_subsampled_histogram_is_the_expectation_over_subsets():
    """All subsets of the other references, written out."""
    from itertools import combinations

    rng = np.random.default_rng(3)
    matrix, own = rng.normal(size=(6, 6)), [0, 1, 2, 3, 4, 5]
    full = np.array(oracle.rank_weights(matrix, own))
    for n in (2, 3, 5, 6):
        total = np.zeros(n)
        for row, j in zip(matrix, own):
            others = [k for k in range(6) if k != j]
            sets = list(combinations(others, n - 1))
            for chosen in sets:
                total[sum(row[k] > row[j] for k in chosen)] += 1 / len(sets)
        assert population.subsampled_histogram(full, n) == pytest.approx(total, abs=1e-12)
