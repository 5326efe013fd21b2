"""Every stage read the name of the scale: after another scale everything was made again, equal as it was."""

from __future__ import annotations

import dataclasses
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from voxveil.config.compose import compose, to_mapping
from voxveil.stages.registry import stage_spec
from voxveil.stages.run import fingerprint


def read(root: Path, scale: str) -> dict[str, Any]:
    """Return what each stage of ``scale`` reads, by stage and key."""
    params = to_mapping(compose(root / f"params/{scale}.yaml"))
    found = {}
    for stage, content in yaml.safe_load((root / "dvc.yaml").read_text())["stages"].items():
        section = content.get("foreach", "").removeprefix("${").removesuffix("}")
        keys = reduce(lambda part, name: part[name], section.split("."), params) if section else [""]
        for key in keys:
            names = [name.replace("${key}", key) for name in content.get("do", content)["params"]]
            found[stage, key] = [reduce(lambda p, n: p[n], name.split("."), params) for name in names]
    return found


@pytest.mark.parametrize(
    ("scale", "before", "new"),
    [
        ("noise-mini", "systems-mini", set()),
        ("attack-mini", "systems-mini", {"train_attacker"}),
        ("papers-mini", "systems-mini", set()),
        ("papers-mini", "noise-mini", set()),
    ],
)
def test_what_a_scale_takes_from_the_cache(root: Path, scale: str, before: str, new: set[str]) -> None:
    made, wanted = read(root, before), read(root, scale)
    shared = [each for each in wanted if each in made]
    assert {stage for stage, _ in shared} >= {"prepare", "train_content", "train_synthesis", "anonymize"}
    differ = {stage for stage, key in shared if made[stage, key] != wanted[stage, key]}
    # Metrics and page name the scale.
    assert differ == {*new, "evaluate", "report"}


def test_a_checkpoint_is_of_no_scale(root: Path) -> None:
    params = compose(root / "params/tiny.yaml")
    other = dataclasses.replace(params, base=dataclasses.replace(params.base, scale="mine"))
    marks = {fingerprint(stage_spec("train_speaker"), "", each, {}) for each in (params, other)}
    assert len(marks) == 1
