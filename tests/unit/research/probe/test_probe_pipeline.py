"""The DVC pipeline of an experiment: every variant and draw a stage of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from import_graph import import_graph
from voxveil.cli.main import main
from voxveil.config.compose import compose
from voxveil.research.probe.conformer import _CODE
from voxveil.research.probe.pipeline import GATHER_CODE, PROBE_CODE, dvc_yaml
from voxveil.runtime.errors import InputError
from voxveil.stages.run import code_digest


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


#: What the code digests leave out: files, parameters and audio are read as every stage reads them.
SHARED = ("runtime", "config", "audio", "corpus", "stages")


@pytest.mark.parametrize(
    ("start", "names", "left_out"),
    [
        ("pipeline", PROBE_CODE, SHARED),
        ("experiment", GATHER_CODE, (*SHARED, "metrics", "privacy", "results")),
    ],
)
def test_code_behind_a_probe_is_what_it_imports(
    start: str, names: tuple[str, ...], left_out: tuple[str, ...], root: Path
) -> None:
    graph = import_graph(root / "src/voxveil")
    pending, seen = [f"voxveil.research.probe.{start}"], set()
    if start == "experiment":
        # It reads where probes lie from there, and none of what measures them.
        seen.add("voxveil.research.probe.pipeline")
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending += graph[module]
    seen.discard("voxveil.research.probe.pipeline")
    files = {f"{module.removeprefix('voxveil.').replace('.', '/')}.py" for module in seen - {"voxveil"}}
    packages = {file for file in files if not (root / "src/voxveil" / file).is_file()}
    covered = tuple(f"{name.removesuffix('.py')}" for name in (*names, *left_out))
    assert not [file for file in files - packages if not file.startswith(covered)]


@pytest.mark.parametrize("name", [*PROBE_CODE, *GATHER_CODE, *_CODE])
def test_a_digest_is_of_code_that_there_is(name: str) -> None:
    assert len(code_digest(name)) == 64


def test_a_digest_of_no_code_is_refused() -> None:
    with pytest.raises(InputError, match="code decoding: no such module or package"):
        code_digest("decoding")
