"""What may not change a metric, and how a label flip changes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.metrics import eer, examples, linkability
from voxveil.metrics.data import CountTable, UndefinedMetricError
from voxveil.metrics.pav import pav, smooth
from voxveil.metrics.suite import SuiteOptions, trial_values
from voxveil.metrics.zebra import expected_disclosure

FREE = (
    "eer",
    "eer_rocch",
    "tpr_fpr1",
    "tpr_fpr01",
    "cllr_min",
    "zebra_expected",
    "zebra_worst_case",
    "eps_max_pav",
)
# Strictly monotone and far from rounding two of these scores together.
MAPS = (np.exp, np.tanh, lambda x: 3 * x - 7, lambda x: x**3 + x, np.arctan)
lists = st.lists(st.integers(-12, 12).map(lambda k: k / 8), min_size=1, max_size=40)
quick = settings(max_examples=60, deadline=None)


def values(target, nontarget):
    return trial_values(CountTable.from_scores(target, nontarget), SuiteOptions())[0].value


@quick
@given(lists, lists, st.sampled_from(MAPS))
def test_monotone_maps_change_nothing(target, nontarget, function):
    before, after = (
        values(target, nontarget),
        values(function(np.array(target)), function(np.array(nontarget))),
    )
    for name in FREE:
        assert after[name] == before[name], name


def test_monotone_maps_do_change_the_rest():
    rng = np.random.default_rng(0)
    t, n = rng.normal(1, 1, 200), rng.normal(0, 1, 800)
    options = SuiteOptions(scores_are_llr=True)
    before = trial_values(CountTable.from_scores(t, n), options)[0].value
    after = trial_values(CountTable.from_scores(np.exp(t), np.exp(n)), options)[0].value
    assert {name for name in before if before[name] != after[name]} == {
        "cllr",
        "eps_max_gauss",
        "eps_max_t",
        "linkability",
        "unlinkability",
        "linkability_vpc",
    }


@quick
@given(lists, lists, st.randoms(use_true_random=False))
def test_order_changes_nothing(target, nontarget, random):
    before = values(target, nontarget)
    random.shuffle(target)
    random.shuffle(nontarget)
    after = values(target, nontarget)
    assert all(before[k] == after[k] or np.isnan(before[k]) for k in before)


@quick
@given(lists, lists, st.integers(2, 5))
def test_ties_are_one_step(target, nontarget, times):
    """Everything repeated: the same shares at the same scores."""
    before, after = values(target, nontarget), values(target * times, nontarget * times)
    for name in ("eer", "eer_rocch", "cllr_min", "zebra_expected", "eps_max_gauss"):
        assert after[name] == pytest.approx(before[name], abs=1e-9, nan_ok=True), name


@quick
@given(lists, lists)
def test_flipped_labels(target, nontarget):
    """EER becomes 1 - EER; the hull never passes 1/2; with scores negated too, the roles only swap."""
    here, there = CountTable.from_scores(target, nontarget), CountTable.from_scores(nontarget, target)
    assert eer.eer(there) == pytest.approx(1 - eer.eer(here), abs=1e-12)
    assert eer.eer_rocch(pav(there)) <= 0.5
    swapped = CountTable.from_scores(-np.array(nontarget), -np.array(target))
    assert eer.eer_rocch(pav(swapped)) == pytest.approx(eer.eer_rocch(pav(here)), abs=1e-12)
    assert expected_disclosure(pav(swapped)) == pytest.approx(expected_disclosure(pav(here)), abs=1e-12)
    assert smooth(pav(swapped)).max_abs_llr() == pytest.approx(smooth(pav(here)).max_abs_llr(), abs=1e-12)


@quick
@given(lists)
def test_equal_lists_leak_nothing(both):
    found = values(both, both)
    assert found["cllr_min"] == 1
    assert found["zebra_expected"] == 0
    assert found["eps_max_pav"] == 0
    assert found["eer_rocch"] == 0.5 * 100
    if len(both) >= 2:
        assert found["linkability"] == 0


@pytest.mark.parametrize("n_target", [2, 9, 10, 19, 500])
def test_linkability_at_its_ends(n_target):
    rng = np.random.default_rng(n_target)
    t, n = rng.uniform(2, 3, n_target), rng.uniform(0, 1, 300)
    assert linkability.linkability(CountTable.from_scores(t, n)) == 1
    assert linkability.linkability(CountTable.from_scores(n, n)) == 0
    assert linkability.linkability(CountTable.from_scores(np.ones(n_target), np.ones(30))) == 0


def test_linkability_is_undefined_with_one_target():
    with pytest.raises(UndefinedMetricError, match="at least 2"):
        linkability.linkability(CountTable.from_scores([1.0], [0.0, 2.0]))


@pytest.mark.parametrize(("first", "worst"), [(0, np.log(2)), (1, 0.0)])
def test_pav_examples_repeated(first, worst):
    """The worst case stays what it is for six scores while the EER tends to 50 %."""
    rates = []
    for n in (1, 2, 7, 40, 1000):
        table = examples.pav_example(first, n)
        assert table.values.size == 6 * n
        assert smooth(pav(table)).max_abs_llr() == pytest.approx(worst, abs=1e-12)
        rates.append(eer.eer_rocch(pav(table)))
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(0.5, abs=1e-3)


def test_same_mean_gaussians():
    """EER 50 %, yet the estimated LLR follows the true one, which is unbounded."""
    from voxveil.metrics.eps_gauss import fit_gauss

    table = examples.same_mean_scores(20_000)
    assert eer.eer(table) == pytest.approx(0.5, abs=0.01)
    x = np.linspace(-4, 4, 9)
    assert fit_gauss(table).llr(x) == pytest.approx(examples.same_mean_llr(x), abs=0.15)
    assert smooth(pav(table)).max_abs_llr() > 4
