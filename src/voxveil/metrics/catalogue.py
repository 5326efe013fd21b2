"""The table of all metrics: unit, direction, estimator, meaning, and name in MLflow.

``privacy/NAME`` is the ECAPA attacker in the semi-informed scenario (the strongest standard one; its
enrolment and trial utterances are both anonymized, AA). Every other pair is
``privacy/ATTACKER/SCENARIO/NAME``. DVC's flat metric files use the same names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "FALSE_POSITIVE_RATES",
    "METRICS",
    "OTHER_METRICS",
    "MetricName",
    "flat_metrics",
    "metric_key",
    "undefined_metrics",
]


@dataclass(frozen=True)
class MetricName:
    """Name, unit, direction and meaning of one metric.

    Attributes:
        unit: ``%``, ``bit``, ``nat`` or ``fraction``.
        higher_is: ``worse`` or ``better`` for privacy.
        source: ``trials`` (verification scores) or ``ranks`` (every input against the same references).
        estimator: How it is estimated.
        text: One line for people.
        maximum: True where it is a maximum: its interval is a range, which gates nothing.
    """

    unit: str
    higher_is: str
    source: str
    estimator: str
    text: str
    maximum: bool = False


def _rank_names() -> dict[str, MetricName]:
    names = {}
    for suffix, estimator in (("", "empirical"), ("_bb", "beta-binomial, maximum likelihood")):
        names[f"rank_mean{suffix}"] = MetricName(
            "bit", "worse", "ranks", estimator, "mean similarity-rank disclosure; log2 N is full"
        )
        names[f"rank_max{suffix}"] = MetricName(
            "bit", "worse", "ranks", estimator, "largest similarity-rank disclosure", True
        )
        names[f"identification_rate{suffix}"] = MetricName(
            "%", "worse", "ranks", estimator, "inputs whose own reference ranks first; 100/N is chance"
        )
        names[f"rank_spread{suffix}"] = MetricName(
            "fraction",
            "better",
            "ranks",
            estimator,
            "share of ranks above chance; small = concentrated",
            True,
        )
    return names


METRICS: dict[str, MetricName] = {
    "eer": MetricName(
        "%", "better", "trials", "closest crossing", "equal error rate; 50 does not prove privacy"
    ),
    "eer_rocch": MetricName(
        "%", "better", "trials", "ROC convex hull", "equal error rate of the best calibrated rule"
    ),
    "tpr_fpr1": MetricName(
        "%",
        "worse",
        "trials",
        "lowest threshold with at most 1 % false positives",
        "target trials accepted at 1 % false positives; chance is 1",
    ),
    "tpr_fpr01": MetricName(
        "%",
        "worse",
        "trials",
        "lowest threshold with at most 0.1 % false positives",
        "target trials accepted at 0.1 % false positives; chance is 0.1",
    ),
    "cllr": MetricName(
        "bit", "better", "trials", "scores as natural-log LLRs", "cost of the LLRs as they are"
    ),
    "cllr_min": MetricName(
        "bit", "better", "trials", "PAV, unsmoothed", "cost after best calibration; 1 = no evidence"
    ),
    "linkability": MetricName(
        "fraction",
        "worse",
        "trials",
        "D_sys, sum over bins",
        "global linkability; 0 = unlinkable, 1 = linkable",
    ),
    "unlinkability": MetricName(
        "fraction", "better", "trials", "1 - D_sys, sum over bins", "1 - linkability"
    ),
    "linkability_vpc": MetricName(
        "fraction",
        "worse",
        "trials",
        "D_sys, trapezoid over bin centres",
        "linkability as in published tables",
    ),
    "zebra_expected": MetricName(
        "bit", "worse", "trials", "ZEBRA D_ECE, PAV, unsmoothed", "expected disclosure; 0.7213 is full"
    ),
    "zebra_worst_case": MetricName(
        "nat",
        "worse",
        "trials",
        "ZEBRA, PAV, Laplace by ZEBRA's convention",
        "largest |LLR| of a score",
        True,
    ),
    "eps_max_pav": MetricName("nat", "worse", "trials", "PAV", "largest |LLR| of a score", True),
    "eps_max_gauss": MetricName(
        "nat", "worse", "trials", "two Gaussians, moments with ddof 0", "largest |LLR| of a score", True
    ),
    "eps_max_t": MetricName(
        "nat",
        "worse",
        "trials",
        "two t distributions, maximum likelihood, 1 <= df <= inf",
        "largest |LLR| of a score",
        True,
    ),
    "eps_max_rank": MetricName(
        "nat", "worse", "ranks", "beta-binomial, two-sided", "largest |LLR| of a rank", True
    ),
    "eps_max_rank_positive": MetricName(
        "nat", "worse", "ranks", "beta-binomial, upwards only", "largest LLR of a rank", True
    ),
    "eps_max_rank_empirical": MetricName(
        "nat",
        "worse",
        "ranks",
        "histogram, two-sided",
        "largest |LLR| of a rank; unbounded when a rank is empty",
        True,
    ),
    **_rank_names(),
    "singling_out": MetricName(
        "fraction",
        "worse",
        "ranks",
        "legal_eval, N' = N, first input tests",
        "legal sense; 1/e = 0.368 is trivial",
    ),
    "linkability_legal": MetricName(
        "fraction",
        "worse",
        "ranks",
        "legal_eval, exact, N' = N",
        "legal sense; 1/N is chance; a tie is a success",
    ),
}
"""Every metric of the suite in the order of the tables."""

FALSE_POSITIVE_RATES = {"tpr_fpr1": 0.01, "tpr_fpr01": 0.001}
"""False positive rates of the metrics that are true positive rates."""

OTHER_METRICS: dict[str, str] = {
    "privacy/p_asi": "%",
    "utility/wer": "%",
    "utility/wer_judged": "%",
    "utility/wer_permuted": "%",
    "utility/per": "%",
    "utility/u_asr": "%",
    "utility/pitch_correlation": "fraction",
}
"""Full names of metrics that other stages write, with their units."""


def metric_key(name: str, attacker: str, scenario: str) -> str:
    """Return the MLflow and DVC name of a privacy metric."""
    who = attacker.strip().lower()
    where = scenario.strip().lower().replace("_", "-")
    if who == "ecapa" and where in ("semi-informed", "aa"):
        return f"privacy/{name}"
    return f"privacy/{who}/{where}/{name}"


def flat_metrics(full: Mapping[str, Any], attacker: str, scenario: str) -> dict[str, float]:
    """Return the flat numbers of one evaluation for MLflow and DVC.

    Args:
        full: The JSON of :func:`voxveil.metrics.suite.evaluate_scores`.
        attacker: Attacker's name, e.g. ``ecapa``.
        scenario: What the attacker knows, e.g. ``semi-informed``.

    Returns:
        Value by name; undefined metrics are absent, their count is ``.../undefined``.
    """
    flat: dict[str, float] = {}
    for name, entry in full["metrics"].items():
        value = entry["value"]
        if value is not None and math.isfinite(value):
            flat[metric_key(name, attacker, scenario)] = float(value)
    undefined = len(full["metrics"]) - len(flat)
    flat[metric_key("undefined", attacker, scenario)] = float(undefined)
    return flat


def undefined_metrics(full: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason of every metric without a value, for MLflow tags."""
    return {name: str(entry["note"]) for name, entry in full["metrics"].items() if entry["value"] is None}
