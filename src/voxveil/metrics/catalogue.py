"""The table of all metrics (unit, direction, estimator, meaning, name in MLflow), and of one result as text.

``privacy/NAME`` is the ECAPA attacker in the semi-informed scenario (the strongest standard one; its
enrolment and trial utterances are both anonymized, AA). Every other pair is
``privacy/ATTACKER/SCENARIO/NAME``. DVC's flat metric files use the same names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from voxveil.runtime.terminal import align_columns

__all__ = [
    "FALSE_POSITIVE_RATES",
    "METRICS",
    "MetricName",
    "flat_metrics",
    "format_result",
    "metric_key",
    "undefined_metrics",
    "undefined_text",
]


@dataclass(frozen=True)
class MetricName:
    """Name, unit, direction and meaning of one metric.

    Attributes:
        unit: ``%``, ``bit``, ``nat`` or ``fraction``.
        higher_is: ``worse`` or ``better`` for privacy.
        estimator: How it is estimated.
        text: One line for people.
        maximum: True where it is a maximum: its interval is a range, which gates nothing.
        source: ``trials`` (verification scores) or ``ranks`` (every input against the same references).
    """

    unit: str
    higher_is: str
    estimator: str
    text: str
    maximum: bool = False
    source: str = "trials"


def _worst(estimator: str, text: str = "largest |LLR| of a score") -> MetricName:
    return MetricName("nat", "worse", estimator, text, maximum=True)


def _rank_names(suffix: str, how: str) -> dict[str, MetricName]:
    mean = "mean similarity-rank disclosure; log2 N is full"
    spread = "share of ranks above chance; small = concentrated"
    first = "inputs whose own reference ranks first; 100/N is chance"
    return {
        f"rank_mean{suffix}": MetricName("bit", "worse", how, mean),
        f"rank_max{suffix}": MetricName("bit", "worse", how, "largest similarity-rank disclosure", True),
        f"identification_rate{suffix}": MetricName("%", "worse", how, first),
        f"rank_spread{suffix}": MetricName("fraction", "better", how, spread, True),
    }


_TRIAL_METRICS = {
    "eer": MetricName("%", "better", "closest crossing", "equal error rate; 50 does not prove privacy"),
    "eer_rocch": MetricName("%", "better", "ROC convex hull", "equal error rate of the best calibrated rule"),
    "tpr_fpr1": MetricName(
        "%",
        "worse",
        "at most 1 % false positives",
        "target trials accepted at 1 % false positives; chance is 1",
    ),
    "tpr_fpr01": MetricName(
        "%",
        "worse",
        "at most 0.1 % false positives",
        "target trials accepted at 0.1 % false positives; chance is 0.1",
    ),
    "cllr": MetricName("bit", "better", "scores as natural-log LLRs", "cost of the LLRs as they are"),
    "cllr_min": MetricName(
        "bit", "better", "PAV, unsmoothed", "cost after best calibration; 1 = no evidence"
    ),
    "linkability": MetricName(
        "fraction", "worse", "D_sys, sum over bins", "global linkability; 0 = unlinkable, 1 = linkable"
    ),
    "unlinkability": MetricName("fraction", "better", "1 - D_sys, sum over bins", "1 - linkability"),
    "linkability_vpc": MetricName(
        "fraction", "worse", "D_sys, trapezoid over bin centres", "linkability as in published tables"
    ),
    "zebra_expected": MetricName(
        "bit", "worse", "ZEBRA D_ECE, PAV, unsmoothed", "expected disclosure; 0.7213 is full"
    ),
    "zebra_worst_case": _worst("ZEBRA, PAV, Laplace by ZEBRA's convention"),
    "eps_max_pav": _worst("PAV"),
    "eps_max_gauss": _worst("two Gaussians, moments with ddof 0"),
    "eps_max_t": _worst("two t distributions, maximum likelihood, 1 <= df <= inf"),
}
_RANK_METRICS = {
    "eps_max_rank": _worst("beta-binomial, two-sided", "largest |LLR| of a rank"),
    "eps_max_rank_positive": _worst("beta-binomial, upwards only", "largest LLR of a rank"),
    "eps_max_rank_empirical": _worst(
        "histogram, two-sided", "largest |LLR| of a rank; unbounded when a rank is empty"
    ),
    **_rank_names("", "empirical"),
    **_rank_names("_bb", "beta-binomial, maximum likelihood"),
    "singling_out": MetricName(
        "fraction", "worse", "legal_eval, N' = N, first input tests", "legal sense; 1/e = 0.368 is trivial"
    ),
    "linkability_legal": MetricName(
        "fraction", "worse", "legal_eval, exact, N' = N", "legal sense; 1/N is chance; a tie is a success"
    ),
}
METRICS = _TRIAL_METRICS | {name: replace(about, source="ranks") for name, about in _RANK_METRICS.items()}
"""Every metric of the suite in the order of the tables."""

FALSE_POSITIVE_RATES = {"tpr_fpr1": 0.01, "tpr_fpr01": 0.001}
"""False positive rates of the metrics that are true positive rates."""


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


def undefined_text(note: str) -> str:
    """Return the table cell of a metric that has no value: its kind of reason in a few words.

    Args:
        note: The metric's ``note``, which gives the reason.
    """
    return next((text for text in ("unbounded", "not enough trials") if note.startswith(text)), "undefined")


def undefined_metrics(full: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason of every metric without a value, for MLflow tags."""
    return {name: str(entry["note"]) for name, entry in full["metrics"].items() if entry["value"] is None}


_HEADER = ("metric", "value", "unit", "95 % interval", "if nothing leaks", "worse if", "note")
_RANGE = "ci95 is a range over resampled speakers, not a confidence interval"
_NO_INTERVALS = "no intervals: "


def format_result(result: Mapping[str, Any]) -> str:
    """Return trials, metrics and warnings as lines of text.

    Args:
        result: The JSON contract of :func:`voxveil.metrics.suite.evaluate_scores`.
    """
    trials = result["trials"]
    speakers = "unknown" if trials["speakers"] is None else trials["speakers"]
    lines = [
        f"{trials['target']} target trials, {trials['nontarget']} nontarget trials, speakers: {speakers}",
        "",
    ]
    rows = [_HEADER]
    undefined: dict[str, list[str]] = {}
    reasons: dict[str, None] = {}
    for name, entry in result["metrics"].items():
        notes = [part for part in (entry["note"] or "").split("; ") if part and part != _RANGE]
        reasons |= dict.fromkeys(part for part in notes if part.startswith(_NO_INTERVALS))
        notes = [part for part in notes if not part.startswith(_NO_INTERVALS)]
        unbounded = bool(notes) and notes[0].startswith("unbounded")
        if entry["value"] is None and not unbounded:
            undefined.setdefault("; ".join(notes), []).append(name)
            continue
        if "tag" in entry:
            notes.insert(0, f"log10 {entry['log10']:.4g}, tag {entry['tag']}")
        value = "unbounded" if unbounded else f"{entry['value']:.4g}"
        bounds = _bounds(entry["ci95"])
        if entry["ci95"] is not None and METRICS[name].maximum:
            bounds += " (range)"
        direction = "high" if METRICS[name].higher_is == "worse" else "low"
        rows.append(
            (name, value, entry["unit"], bounds, _bounds(entry["null95"]), direction, "; ".join(notes))
        )
    lines += [*align_columns(rows), ""]
    lines += list(reasons)
    lines += [f"undefined: {', '.join(names)}: {reason}" for reason, names in undefined.items()]
    lines += [f"warning {warning['code']}: {warning['text']}" for warning in result["warnings"]]
    lines.append("A value inside 'if nothing leaks' does not prove privacy by itself.")
    return "\n".join(lines)


def _bounds(bounds: list[float] | None) -> str:
    return "-" if bounds is None else f"{bounds[0]:.3g} .. {bounds[1]:.3g}"
