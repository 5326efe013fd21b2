"""The JSON contract, intervals and null readings."""

from __future__ import annotations

import json
import math

import metric_oracles as oracle
import numpy as np
import pytest
from metric_reference import arrays

from voxveil.metrics.betabinomial import fit_betabinomial
from voxveil.metrics.catalogue import METRICS, flat_metrics, undefined_metrics
from voxveil.metrics.data import CountTable, RankSet, ScoreSet
from voxveil.metrics.intervals import SortedTrials, bootstrap_weights, interval, permutations
from voxveil.metrics.suite import SuiteOptions, evaluate_scores, rank_values, trial_values

RANK_NAMES = ("rank_mean", "rank_max", "identification_rate", "rank_spread")
TRIAL_NAMES = (
    *("eer", "eer_rocch", "tpr_fpr1", "tpr_fpr01", "cllr", "cllr_min"),
    *("linkability", "unlinkability", "linkability_vpc"),
)
NAMES = {
    *TRIAL_NAMES,
    *("zebra_expected", "zebra_worst_case", "eps_max_pav", "eps_max_gauss", "eps_max_t"),
    *("eps_max_rank", "eps_max_rank_positive", "eps_max_rank_empirical"),
    *(f"{name}{suffix}" for name in RANK_NAMES for suffix in ("", "_bb")),
    *("singling_out", "linkability_legal"),
}


def rank_set(n_speakers=8, per_speaker=6, shift=1.0, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_speakers), per_speaker)
    scores = rng.normal(size=(labels.size, n_speakers))
    scores[np.arange(labels.size), labels] += shift
    if ties:
        scores = np.round(scores)
    return RankSet.from_labels(scores, labels, np.arange(n_speakers))


def test_contract():
    given = rank_set()
    result = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=40))
    assert set(result) == {"trials", "metrics", "warnings"}
    assert result["trials"] == {"target": 48, "nontarget": 336, "speakers": 8}
    assert set(result["metrics"]) == NAMES == set(METRICS)
    for name, entry in result["metrics"].items():
        assert set(entry) >= {"value", "unit", "ci95", "null95", "estimator", "note"}, name
        assert entry["unit"] == METRICS[name].unit
        for key in ("ci95", "null95"):
            assert entry[key] is None or (len(entry[key]) == 2 and entry[key][0] <= entry[key][1]), (
                name,
                key,
            )
        assert (entry["value"] is not None) or entry["note"], name
        if METRICS[name].maximum and entry["ci95"]:
            assert "range" in entry["note"], name
    assert {"log10", "tag"} <= set(result["metrics"]["zebra_worst_case"])
    assert all(set(w) == {"code", "text"} for w in result["warnings"])
    json.dumps(result, allow_nan=False)


def test_seeded_and_blind_to_order():
    given = rank_set(seed=3)
    scores = given.pairs()
    order = np.random.default_rng(1).permutation(scores.scores.size)
    shuffled = ScoreSet(
        scores.scores[order],
        scores.is_target[order],
        scores.enrol_speaker[order],
        scores.test_speaker[order],
        8,
    )
    options = SuiteOptions(replicates=30, seed=5)
    first = evaluate_scores(scores, given, options=options)
    assert evaluate_scores(shuffled, given, options=options) == first
    assert evaluate_scores(scores, given, options=SuiteOptions(replicates=30, seed=6)) != first


@pytest.mark.parametrize("name", ["tiny_ex1", "tiny_ex2", "constant", "one_target", "separated"])
def test_no_number_stands_for_undefined(name):
    data = arrays(name)
    result = evaluate_scores(ScoreSet.from_scores(data["target"], data["nontarget"]), None)
    text = json.dumps(result, allow_nan=False)
    assert "e+308" not in text
    for entry in result["metrics"].values():
        assert entry["value"] is not None or entry["note"]
        assert entry["value"] is None or math.isfinite(entry["value"])
    flat = flat_metrics(result, "ecapa", "semi-informed")
    undefined = undefined_metrics(result)
    assert flat["privacy/undefined"] == len(undefined) > 0
    assert not {f"privacy/{n}" for n in undefined} & flat.keys()
    assert result["metrics"]["rank_mean"]["note"]
    assert "no intervals: the scores carry no speakers" in result["metrics"]["eer"]["note"]


def test_names_in_mlflow():
    full = {"metrics": {"eer": {"value": 1.5, "note": None}, "cllr": {"value": None, "note": "why"}}}
    assert flat_metrics(full, "ecapa", "semi-informed") == {"privacy/eer": 1.5, "privacy/undefined": 1.0}
    assert flat_metrics(full, "ECAPA", "semi_informed")["privacy/eer"] == 1.5
    assert flat_metrics(full, "xvector_plda", "ignorant") == {
        "privacy/xvector_plda/ignorant/eer": 1.5,
        "privacy/xvector_plda/ignorant/undefined": 1.0,
    }
    assert flat_metrics(full, "ecapa", "ignorant")["privacy/ecapa/ignorant/eer"] == 1.5


def test_resampled_trials_are_the_trials_written_out():
    scores = rank_set(5, 3, ties=True).pairs()
    trials = SortedTrials.from_scores(scores)
    for weights in bootstrap_weights(5, 20, seed=1):
        written = oracle.resample(
            scores.scores, scores.is_target, scores.enrol_speaker, scores.test_speaker, weights
        )
        want, got = CountTable.from_scores(*written), trials.resampled(weights)
        assert np.array_equal(got.values, want.values)
        assert np.array_equal(got.target, want.target) and np.array_equal(got.nontarget, want.nontarget)
        options = SuiteOptions()
        a, b = trial_values(got, options)[0].value, trial_values(want, options)[0].value
        assert all(a[k] == pytest.approx(b[k], rel=1e-6, nan_ok=True) for k in b)


def test_one_draw_of_speakers_serves_both_sides():
    trials = SortedTrials.from_scores(rank_set(4, 2).pairs())
    weights = np.array([3, 1, 0, 0])
    table = trials.resampled(weights)
    assert table.n_target == 2 * (3 + 1)
    assert table.n_nontarget == 2 * (3 * 1 + 1 * 3)


def test_bootstrap_covers_the_truth():
    """EER intervals of draws with a known EER; 95 % nominal, a loose bound for 60 draws."""
    from scipy.special import ndtr

    truth, hits = 100 * ndtr(-0.5), 0
    for seed in range(60):
        given = rank_set(30, 4, shift=1.0, seed=seed)
        result = _eer_interval(given.pairs(), 200)
        hits += result[0] <= truth <= result[1]
    assert hits >= 50


def _eer_interval(scores, replicates):
    from voxveil.metrics.eer import eer

    trials = SortedTrials.from_scores(scores)
    weights = bootstrap_weights(trials.n_speakers, replicates, seed=0)
    found = interval(np.array([100 * eer(trials.resampled(w)) for w in weights]))
    assert found.bounds is not None
    return found.bounds


def test_interval_rules():
    assert interval(np.arange(101.0)).bounds == pytest.approx((2.5, 97.5))
    few = interval(np.array([*np.arange(99.0), np.inf]))
    assert few.bounds is not None and "1 replicates" in few.note
    many = interval(np.array([*np.arange(90.0), *[np.nan] * 10]))
    assert many.bounds is None and "10 of 100" in many.note


def test_permutations_stay_within_what_was_compared():
    sexes = np.array([0, 0, 0, 1, 1, 1, 1])
    compared = sexes[:, None] == sexes
    drawn = np.stack(list(permutations(compared, 200, seed=0)))
    assert all(sorted(p) == list(range(7)) for p in drawn)
    assert (sexes[drawn] == sexes).all()
    assert len({tuple(p) for p in drawn}) > 60  # of 3! * 4! = 144
    ring = np.eye(6, dtype=bool) | np.roll(np.eye(6, dtype=bool), 1, axis=1)
    for p in permutations(ring, 50, seed=0):
        assert ring[np.arange(6), p].all()


def test_null_of_ranks_is_what_a_perfect_system_reads():
    """N = 40 and 164 inputs: mean about 0.18 bit and max about 1.1 bit, not 0."""
    rng = np.random.default_rng(0)
    values, _ = rank_values(rng.multinomial(164, np.full(40, 1 / 40), size=2000).astype(float))
    assert np.mean(values["rank_mean"]) == pytest.approx(0.18, abs=0.02)
    assert np.median(values["rank_max"]) == pytest.approx(1.1, abs=0.2)
    given = rank_set(40, 5, shift=0.0)
    null = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=100))["metrics"]
    assert null["rank_mean"]["null95"][0] > 0.05
    for name in ("eer", "rank_mean", "identification_rate", "eps_max_pav", "linkability"):
        low, high = null[name]["null95"]
        slack = 0.25 * (high - low)
        assert low - slack <= null[name]["value"] <= high + slack, name


def test_null_of_pav_with_few_targets():
    """80 target and 1520 nontarget trials of one law: median 0.9, up to about 3.6 nat."""
    from voxveil.metrics.pav import pav, smooth

    rng = np.random.default_rng(1)
    worst = [
        smooth(pav(CountTable.from_scores(rng.normal(size=80), rng.normal(size=1520)))).max_abs_llr()
        for _ in range(400)
    ]
    assert np.median(worst) == pytest.approx(0.9, abs=0.3)
    assert 2.8 < np.quantile(worst, 0.99) < 4.2


def test_leak_raises_every_metric_above_its_null():
    given = rank_set(20, 5, shift=3.0)
    metrics = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=60))["metrics"]
    for name, about in METRICS.items():
        entry = metrics[name]
        if entry["value"] is None or entry["null95"] is None:
            continue
        outside = (
            entry["value"] > entry["null95"][1]
            if about.higher_is == "worse"
            else entry["value"] < entry["null95"][0]
        )
        assert outside, (name, entry)


def test_constant_scores_disclose_nothing():
    given = RankSet.from_labels(np.ones((12, 6)), np.repeat(np.arange(6), 2), np.arange(6))
    metrics = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=20))["metrics"]
    zero = (
        "rank_mean",
        "rank_max",
        "rank_spread",
        "rank_mean_bb",
        "eps_max_rank",
        "eps_max_rank_empirical",
        "linkability",
    )
    assert {name: metrics[name]["value"] for name in zero} == pytest.approx(
        dict.fromkeys(zero, 0.0), abs=1e-9
    )
    assert metrics["identification_rate"]["value"] == pytest.approx(100 / 6)
    assert (metrics["identification_rate"]["optimistic"], metrics["identification_rate"]["strict"]) == (
        100,
        0,
    )
    assert "12 inputs tied: optimistic 100, strict 0" in metrics["identification_rate"]["note"]


def test_perfect_identification():
    given = rank_set(16, 3, shift=100.0)
    metrics = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=0))["metrics"]
    for suffix in ("", "_bb"):
        assert metrics[f"identification_rate{suffix}"]["value"] == 100
        assert metrics[f"rank_mean{suffix}"]["value"] == metrics[f"rank_max{suffix}"]["value"] == 4
        assert metrics[f"rank_spread{suffix}"]["value"] == 1 / 16
    for name in ("eps_max_rank", "eps_max_rank_positive", "eps_max_rank_empirical"):
        assert metrics[name]["value"] is None and metrics[name]["note"].startswith("unbounded"), name


def test_beta_binomial_limits_are_named():
    rows = np.array([[9, 0, 0, 0], [0, 0, 0, 9], [4, 0, 0, 5], [0, 9, 0, 0], [3, 3, 3, 3]], dtype=float)
    fits = fit_betabinomial(rows)
    assert fits.limit == ("one end", "one end", "two ends", "binomial", "")
    assert (fits.alpha[4], fits.beta[4]) == pytest.approx((1, 1))
    assert fits.gamma.sum(1) == pytest.approx(np.ones(5))


def test_rank_and_legal_metrics_need_ranks():
    scores = rank_set().pairs()
    metrics = evaluate_scores(scores, None, options=SuiteOptions(replicates=0), rank_reason="half the pairs")[
        "metrics"
    ]
    for name, about in METRICS.items():
        if about.source == "ranks":
            assert metrics[name]["value"] is None and metrics[name]["note"] == "half the pairs"


def test_singling_out_needs_two_inputs_a_speaker():
    given = rank_set(6, 1)
    entry = evaluate_scores(given.pairs(), given, options=SuiteOptions(replicates=0))["metrics"][
        "singling_out"
    ]
    assert entry["value"] is None and "single input" in entry["note"]


@pytest.mark.parametrize("bad", [{"pav_rule": "laplace"}, {"replicates": -1}])
def test_wrong_options(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SuiteOptions(**bad)


@pytest.mark.parametrize(("nontargets", "defined"), [(999, False), (1000, True), (10_000, True)])
def test_a_true_positive_rate_needs_ten_false_alarms(nontargets, defined):
    rng = np.random.default_rng(3)
    is_target = np.arange(50 + nontargets) < 50
    scores = ScoreSet(rng.normal(2.0 * is_target, 1), is_target)
    metrics = evaluate_scores(scores, None, options=SuiteOptions(replicates=0))["metrics"]
    assert (metrics["tpr_fpr1"]["value"] is not None) == defined
    assert (metrics["tpr_fpr01"]["value"] is not None) == (nontargets == 10_000)
    if not defined:
        assert metrics["tpr_fpr1"]["note"].startswith("not enough trials: 999 nontarget trials, needs 1000")


def test_true_positive_rates_of_two_gaussians():
    """At the threshold of 1 % false positives, N(2, 1) is accepted with probability 1 - Phi(2.326 - 2)."""
    rng = np.random.default_rng(4)
    table = CountTable.from_scores(rng.normal(2, 1, 100_000), rng.normal(0, 1, 100_000))
    found = trial_values(table, SuiteOptions())[0].value
    assert found["tpr_fpr1"] == pytest.approx(37.2, abs=1.5)
    assert found["tpr_fpr01"] == pytest.approx(13.8, abs=2.5)
