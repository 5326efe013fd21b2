"""The DVC pipeline of an experiment: every variant and draw a stage of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from voxveil.cli.main import main
from voxveil.config.compose import compose
from voxveil.research.probe.pipeline import dvc_yaml


@pytest.mark.parametrize("scale", ["features-mini", "features-tiny"])
def test_each_variant_is_trained_once_and_probed_in_every_draw(root: Path, scale: str) -> None:
    params = compose(root / "params" / f"{scale}.yaml")
    stages = yaml.safe_load(dvc_yaml(params, 3))["stages"]
    variants = {"pitch": params.pitch_variants, "content": params.content_variants}
    probes = [name for name in stages if name.startswith("probe-")]
    assert sorted(probes) == sorted(
        f"probe-{kind}-{name}-{draw}"
        for kind, found in variants.items()
        for name, variant in found.items()
        for draw in range(1, 2 if variant.mechanism == "identity" else 4)
    )
    made = {out for stage in stages.values() for out in stage["outs"]}
    for name, stage in stages.items():
        assert set(stage.get("deps", [])) <= made, name
    assert sorted(stages["gather"]["deps"]) == sorted(stages[name]["outs"][0] for name in probes)


def test_a_variants_stage_depends_on_its_own_parameters_only(root: Path) -> None:
    stages = yaml.safe_load(dvc_yaml(compose(root / "params/features-mini.yaml"), 1))["stages"]
    named = [each for each in stages["train_content-sharp-3"]["params"] if isinstance(each, str)]
    assert named == ["base", "train_content", "content_variants.sharp-3"]


def test_a_folder_with_other_things_is_left_alone(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["probe", "run", str(tmp_path), "--scale", "features-tiny"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "not empty and not an experiment" in error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert main(["probe", "run", str(tmp_path / "new"), "--scale", "no-such"]) == 2
    assert "no overlay 'no-such'" in capsys.readouterr().err
    assert main(["probe", "run", str(tmp_path / "new"), "--scale", "features-mini"]) == 2
    assert "prepare.source: data/LibriSpeech: no such folder" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
