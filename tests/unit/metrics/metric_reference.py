"""The reference score sets, drawn again from their recipes, and their expected values.

``metric_reference.json`` holds the values of an independent numpy/scipy implementation that was cross-checked
with ZEBRA, the VoicePrivacy 2024 evaluation, legal_eval, lir and scipy.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
REFERENCE = json.loads((HERE / "metric_reference.json").read_text())
SCORE_SETS = REFERENCE["score_sets"]
RANK_SETS = REFERENCE["rank_sets"]


def arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a set by its recipe."""
    if name == "gauss2000":
        rng = np.random.default_rng(101)
        return {"target": rng.normal(0, 2, 2000), "nontarget": rng.normal(0, 1, 2000)}
    if name in ("sep_easy", "ties"):
        rng = np.random.default_rng(102)
        drawn = {"target": rng.normal(3, 1, 2000), "nontarget": rng.normal(0, 1, 20000)}
        return {k: np.round(2 * v) / 2 for k, v in drawn.items()} if name == "ties" else drawn
    if name in ("tiny_ex1", "tiny_ex2"):
        scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        odd = {"target": scores[1::2], "nontarget": scores[::2]}
        return odd if name == "tiny_ex1" else {"target": odd["nontarget"], "nontarget": odd["target"]}
    if name == "constant":
        return {"target": np.full(50, 0.7), "nontarget": np.full(200, 0.7)}
    if name == "separated":
        rng = np.random.default_rng(108)
        return {"target": rng.uniform(2, 3, 300), "nontarget": rng.uniform(0, 1, 1500)}
    if name == "one_target":
        return {"nontarget": np.random.default_rng(109).normal(0, 1, 200), "target": np.array([1.25])}
    if name == "rank40":
        labels = np.repeat(np.arange(40), 10)
        scores = np.random.default_rng(110).normal(0, 0.3, (400, 40))
        scores[np.arange(400), labels] += 0.5
        return {"scores": scores, "input_labels": labels, "reference_labels": np.arange(40)}
    if name == "big":
        rng = np.random.default_rng(110200)
        return {"target": rng.normal(1, 1, 200_000), "nontarget": rng.normal(0, 1, 2_000_000)}
    raise KeyError(name)


def number(value: object) -> float:
    """Return an expected value; infinities are text there."""
    return float(value)  # type: ignore[arg-type]
