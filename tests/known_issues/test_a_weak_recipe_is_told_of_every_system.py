"""A kind that misses its bar on original speech was told beside that one row only.

The page showed EERs of 45 % by an attacker who has 33 % on original speech, without a word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from voxveil.metrics.attacked import SHOWN
from voxveil.results.report.results import read_summaries
from voxveil.runtime.atomic import write_json


def metrics(eer: float) -> dict[str, Any]:
    undefined = {"value": None, "unit": "", "note": "not measured", "ci95": None, "null95": None}
    measured = {**undefined, "value": eer, "unit": "%", "ci95": [eer - 4, eer + 4]}
    return {**dict.fromkeys(SHOWN, undefined), "eer": measured}


def write(folder: Path, system: str, kind: str, eers: dict[tuple[str, str], float], training: str) -> None:
    attacks: list[dict[str, Any]] = [
        {
            "attacker": attacker,
            "scenario": scenario,
            "training": training,
            "enrolment": training,
            "trial": "original" if kind == "original" else "anonymized",
            "metrics": metrics(eer),
            "trials": {"target": 84, "nontarget": 1596, "speakers": 40},
            **dict.fromkeys(("references", "inputs", "rank_histogram")),
            "warnings": [],
        }
        for (attacker, scenario), eer in eers.items()
    ]
    errors = {"value": None, "ci95": None, "reason": "not measured"}
    content = {
        "format": 1,
        "system": system,
        "kind": kind,
        "scale": "tiny",
        "replicates": 200,
        "composition": {"pitch_conversion": False},
        "corpus": {"name": "made", "synthetic": True, "public": True, "revision": "0"},
        "promise": {"streams": {}, "utterance": {"epsilon": "inf"}, "passing": "everything"},
        "utility": {"per": errors, "wer": None},
        "attacks": attacks,
    }
    write_json(folder / system / "summary.json", content)


@pytest.mark.parametrize(("bar", "told"), [(33.0, ["f0_histogram"]), (11.0, [])])
def test_a_weak_recipe_is_told_of_every_system(tmp_path: Path, bar: float, told: list[str]) -> None:
    semi, lazy = "semi_informed", "lazy_informed"
    write(tmp_path, "original", "original", {("ecapa", semi): 1.0, ("f0_histogram", semi): bar}, "original")
    found = {("ecapa", semi): 40.0, ("f0_histogram", lazy): 45.0, ("f0_histogram", semi): 45.0}
    write(tmp_path, "anon", "anonymized", found, "anonymized")
    _, anon = read_summaries(tmp_path, ["original", "anon"])
    warned = [
        (attack["attacker"], attack["scenario"])
        for attack in anon["attacks"]
        for warning in attack["warnings"]
        if warning["code"] == "attacker_not_converged"
    ]
    assert warned == [(attacker, semi) for attacker in told]
