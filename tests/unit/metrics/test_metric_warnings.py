"""Each warning has a planted case that fires it and a clean one that does not."""

from __future__ import annotations

import numpy as np
import pytest
from metric_reference import arrays

from voxveil.metrics.attacked import convergence_warnings, without_result
from voxveil.metrics.data import RankSet, ScoreSet
from voxveil.metrics.evidence import WARNING_CODES, binormal_identification
from voxveil.metrics.suite import SuiteOptions, evaluate_scores


def codes(scores, ranks=None, replicates=0):
    result = evaluate_scores(scores, ranks, options=SuiteOptions(replicates=replicates))
    for warning in result["warnings"]:
        assert any(c.isdigit() for c in warning["text"]), "a warning shows its evidence"
    return {warning["code"]: warning["text"] for warning in result["warnings"]}


def gaussians(mean, sd_target=1.0, n_target=2000, n_nontarget=2000, seed=0):
    rng = np.random.default_rng(seed)
    return ScoreSet.from_scores(rng.normal(mean, sd_target, n_target), rng.normal(0, 1, n_nontarget))


def attack(shift, rows=0.0, n=40, per_speaker=5, seed=0):
    """Rank scores; ``rows`` moves all scores of an input together, which hides it from the EER only."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n), per_speaker)
    scores = rng.normal(size=(labels.size, n)) + rows * rng.normal(size=(labels.size, 1))
    scores[np.arange(labels.size), labels] += shift
    return RankSet.from_labels(scores, labels, np.arange(n))


def test_eer_hides_evidence():
    found = codes(gaussians(0, sd_target=2))
    assert "near chance" in found["eer_hides_evidence"]
    assert "eer_hides_evidence" not in codes(gaussians(0))
    assert "eer_hides_evidence" not in codes(gaussians(3)), "a low EER hides nothing"


def test_eer_hides_evidence_that_only_narrower_targets_show():
    """PAV sees little of it; the Gaussians do."""
    assert "eer_hides_evidence" in codes(gaussians(0, sd_target=0.4))


def test_eer_hides_evidence_judged_by_what_chance_reads():
    rng = np.random.default_rng(0)
    given = attack(0.0)
    wide = given.scores.copy()
    rows = np.arange(wide.shape[0])
    wide[rows, given.speaker_index] = 3 * rng.normal(size=rows.size)
    leaky = RankSet(wide, given.speaker_index, given.speakers)
    assert "chance reads up to" in codes(leaky.pairs(), leaky, 100)["eer_hides_evidence"]
    assert "eer_hides_evidence" not in codes(given.pairs(), given, 100)


def test_pav_ceiling_shows_m():
    data = arrays("separated")
    assert (
        "M = 300 target trials"
        in codes(ScoreSet.from_scores(data["target"], data["nontarget"]))["pav_ceiling"]
    )
    data = arrays("one_target")
    assert "pav_ceiling" not in codes(ScoreSet.from_scores(data["target"], data["nontarget"]))


def test_estimators_disagree():
    rng = np.random.default_rng(0)
    outlier = ScoreSet.from_scores(np.append(rng.normal(1, 1, 500), 40.0), rng.normal(0, 1, 2000))
    assert "eps_max_gauss" in codes(outlier)["estimators_disagree"]
    assert "estimators_disagree" not in codes(gaussians(1.0))


def test_scores_reversed():
    good = gaussians(1.0)
    distances = ScoreSet.from_scores(-good.target, -good.nontarget)
    text = codes(distances)["scores_reversed"]
    assert "may be reversed" in text and "nothing was folded" in text
    assert evaluate_scores(distances, None)["metrics"]["eer"]["value"] > 60
    assert not {"scores_reversed"} & codes(good).keys()
    for seed in range(10):
        assert "scores_reversed" not in codes(gaussians(0, seed=seed))
    tiny = arrays("tiny_ex2")
    assert "scores_reversed" in codes(ScoreSet.from_scores(tiny["target"], tiny["nontarget"]))


def test_scores_reversed_judged_by_what_chance_reads():
    given = attack(-2.0)
    assert "scores_reversed" in codes(given.pairs(), given, 100)
    given = attack(0.0)
    assert "scores_reversed" not in codes(given.pairs(), given, 100)


def test_too_few_targets():
    assert "59 target trials" in codes(gaussians(0, n_target=59))["too_few_targets"]
    assert "too_few_targets" not in codes(gaussians(0, n_target=60))
    few = attack(1.0, n=5, per_speaker=20)
    assert "5 speakers" in codes(few.pairs(), few, 20)["too_few_targets"]


def test_pooled_attack_stronger():
    hidden = attack(4.0, rows=8.0)
    text = codes(hidden.pairs(), hidden, 50)["pooled_attack_stronger"]
    assert "among 40" in text
    plain = attack(1.0)
    assert "pooled_attack_stronger" not in codes(plain.pairs(), plain, 50)


def test_published_case_of_a_pooled_attack():
    """EER 40.32 % lets expect far less than the published identification rate of 69.37 % at N = 40."""
    assert 100 * binormal_identification(0.4032, 40) < 10
    assert binormal_identification(0.5, 40) == pytest.approx(1 / 40, abs=1e-6)
    assert binormal_identification(0.3, 2) == pytest.approx(1 - 0.2292, abs=1e-3)  # AUC of d' = 1.0488


def test_attacker_not_converged_is_a_rule_of_its_own():
    """It compares attacks, so it is in metrics/attacked.py; its cases are in test_convergence.py."""
    weak = {"eer": {"value": 30.0, "ci95": None}}
    attacks = [
        {
            "attacker": "ecapa",
            "scenario": "semi_informed",
            "training": "original",
            "trial": "original",
            "metrics": weak,
        }
    ]
    assert convergence_warnings(attacks)["ecapa", "semi_informed"]["code"] in WARNING_CODES


def test_utterances_without_result_are_counted_in_words():
    assert without_result({"counts": {"utterances_without_result": 0}}) == []
    assert without_result({"counts": {}}) == []
    (found,) = without_result({"counts": {"utterances_without_result": 3}})
    assert found["code"] in WARNING_CODES
    assert found["text"].startswith("3 utterances gave the attacker nothing to compare")


def test_all_codes_are_covered():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    for code in WARNING_CODES:
        assert any(name.startswith(code) for name in tested), code
