"""A job ended quietly with anonymised audio, but no evaluation and no result folder.

Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2024/issues/63 and
https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2024/issues/64, on hosts
without a GPU. Here the last part of the chain runs under DVC as ``voxveil demo`` runs it, no GPU in sight.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.config import load_params

pytest.importorskip("dvc", reason="needs the data extra")
if not shutil.which("git"):
    pytest.skip("needs git", allow_module_level=True)

STAGES = """stages:
  evaluate:
    cmd: >-
      {python} -m voxveil.cli.main stage evaluate --key anon --in scores=outputs/score/anon
      --in transcripts=outputs/transcribe/anon --in released=outputs/anonymize/anon/released
      --out metrics=outputs/evaluate/anon --out flat=metrics/anon.metrics.json
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A checkout with everything up to the evaluation of one system."""
    make_outputs(tmp_path, {"anon": SYSTEMS["anon"]})
    shutil.copytree(root / "params", tmp_path / "params")
    (tmp_path / "dvc.yaml").write_text(STAGES.format(python=shlex.quote(sys.executable)))
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=tmp_path, check=True, env=environment(root))
    return tmp_path


def environment(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "CUDA_VISIBLE_DEVICES": "",
        "VOXVEIL_TRACKING": "off",
        "DVC_NO_ANALYTICS": "1",
    }


def demo(checkout: Path, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voxveil.cli.main", "demo"]
    return subprocess.run(
        command, cwd=checkout, env=environment(root), capture_output=True, text=True, check=False
    )


def test_success_means_that_the_results_are_there(checkout: Path, root: Path) -> None:
    result = demo(checkout, root)
    assert result.returncode == 0, result.stderr
    assert "anon" in result.stdout
    assert (checkout / "outputs/evaluate/anon/summary.json").is_file()
    assert list(load_params(checkout / "params.yaml").systems) == ["anon"]


def test_a_stage_that_fails_is_named(checkout: Path, root: Path) -> None:
    shutil.rmtree(checkout / "outputs/score/anon")
    result = demo(checkout, root)
    assert result.returncode == 1
    assert "failed to reproduce 'evaluate'" in result.stderr
    assert "'dvc repro' failed with status" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (checkout / "outputs/evaluate").exists()


@pytest.mark.parametrize("lost", ["", "summary.json", "_DONE.json"])
def test_results_that_were_not_made_are_missed(checkout: Path, root: Path, lost: str) -> None:
    """Every stage ended well, and the results are not, or not all, there."""
    (checkout / "dvc.yaml").write_text("stages: {}\n")
    if lost:
        (evaluate(checkout, "anon") / lost).unlink()
    result = demo(checkout, root)
    assert result.returncode == 2
    assert "outputs/evaluate/anon" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
