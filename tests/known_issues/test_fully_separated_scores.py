"""Fully separated scores made infinite likelihood ratios; the cost became NaN, or a crash.

Seen in https://github.com/NetherlandsForensicInstitute/lir-deprecated/pull/92 and
https://github.com/NetherlandsForensicInstitute/lir-deprecated/issues/64.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from voxveil.cli.main import main


@pytest.fixture
def separated(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    np.savez(path, target=np.ones(10), nontarget=np.zeros(10))
    return path


def test_mean_disclosure_is_full_and_the_worst_case_unbounded(
    separated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result.json"
    assert main(["evaluate", f"--scores={separated}", "--pav-rule=none", f"--json={out}"]) == 0

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    result = json.loads(out.read_text(), parse_constant=refuse)
    metrics = result["metrics"]
    assert metrics["zebra_expected"]["value"] == pytest.approx(1 / (2 * math.log(2)), abs=1e-12)
    assert metrics["zebra_expected"]["value"] == pytest.approx(0.7213, abs=5e-5)
    assert metrics["eps_max_pav"]["value"] is None
    assert metrics["eps_max_pav"]["note"].startswith("unbounded")
    assert metrics["cllr_min"]["value"] == 0
    assert metrics["eer"]["value"] == 0
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith("eps_max_pav"))
    assert line.split()[1] == "unbounded"


def test_smoothing_makes_the_worst_case_finite(separated: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    assert main(["evaluate", f"--scores={separated}", f"--json={out}"]) == 0
    assert math.isfinite(json.loads(out.read_text())["metrics"]["eps_max_pav"]["value"])
