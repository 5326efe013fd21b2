"""A feature-level experiment at the smallest scale, whole; a second run recomputes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import workspace

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.torch]


def test_an_experiment_runs_once_and_tells_words_from_speakers(root: Path, tmp_path: Path) -> None:
    command = ("voxveil", "probe", "run", str(tmp_path / "features"), "--scale", "features-tiny")
    environment = {"PYTHONPATH": str(root / "src"), "VOXVEIL_TRACKING": "off"}
    first = workspace.run(root, *command, "--draws", "1", **environment)
    assert "randomized_response" in first.stdout
    results = json.loads((tmp_path / "features/outputs/features/results.json").read_text())
    probes = {probe["variant"]: probe for probe in results["probes"] if probe["kind"] == "content"}
    plain, noisy = probes["plain"], probes["response-3"]
    assert plain["frame_accuracy"]["all"]["value"] > noisy["frame_accuracy"]["all"]["value"]
    assert plain["asi"]["accuracy"] > 2 * plain["asi"]["chance"] > 0, "without noise the attack must work"
    assert noisy["epsilon_utterance"]["median"] == 3 * noisy["vectors"]["median"]
    assert noisy["asi"]["limit"] <= 1

    again = workspace.run(root, *command, "--draws", "1", **environment)
    assert "Running stage" not in again.stdout
    assert again.stdout.partition("Corpus:")[2] == first.stdout.rpartition("Corpus:")[2]
