"""One score list gave 0.2 or 0.4 by tool; a rate was read as percent or fraction; a sign was reversed so
that a good attacker looked bad.

Seen in https://github.com/clovaai/voxceleb_trainer/issues/11, https://github.com/manuelaguadomtz/pyeer/issues/8
and https://github.com/clovaai/voxceleb_trainer/issues/49.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from voxveil.cli.main import main
from voxveil.metrics.catalogue import format_result
from voxveil.metrics.data import ScoreSet
from voxveil.metrics.suite import SuiteOptions, evaluate_scores


def judged(target: np.ndarray, nontarget: np.ndarray) -> dict:
    return evaluate_scores(ScoreSet.from_scores(target, nontarget), None, options=SuiteOptions(replicates=0))


def test_the_result_names_variant_and_unit() -> None:
    """Where tools disagree: the crossing falls between two steps, and both variants are told apart."""
    result = judged(np.array([0.1, 0.4, 0.6, 0.7, 0.9]), np.array([0.0, 0.2, 0.3, 0.5, 0.8]))
    eer, hull = result["metrics"]["eer"], result["metrics"]["eer_rocch"]
    assert (eer["unit"], eer["estimator"]) == ("%", "closest crossing")
    assert (hull["unit"], hull["estimator"]) == ("%", "ROC convex hull")
    assert eer["value"] == pytest.approx(40.0)
    assert hull["value"] < eer["value"], "the hull is a different number, not a rounding of the other"
    line = next(line for line in format_result(result).splitlines() if line.startswith("eer "))
    assert line.split()[1:3] == ["40", "%"]


def test_distances_raise_a_visible_flag_and_are_not_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    target, nontarget = rng.normal(1.5, 1, 200), rng.normal(0, 1, 2000)
    right, wrong = judged(target, nontarget), judged(-target, -nontarget)
    assert not [w for w in right["warnings"] if w["code"] == "scores_reversed"]
    assert wrong["metrics"]["eer"]["value"] > 70, "folding would show 100 minus it"
    np.savez(tmp_path / "distances.npz", target=-target, nontarget=-nontarget)
    arguments = [f"--scores={tmp_path / 'distances.npz'}", "--replicates=0", f"--json={tmp_path / 'r.json'}"]
    assert main(["evaluate", *arguments]) == 0
    assert "scores may be reversed" in capsys.readouterr().out
    stored = json.loads((tmp_path / "r.json").read_text())
    assert stored["metrics"]["eer"]["value"] == wrong["metrics"]["eer"]["value"]
