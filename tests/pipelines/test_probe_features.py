"""Features by themselves on Kubeflow: every variant and draw a task, gathered as the command line does."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import goldens
import messages
import pytest

from made_phones import write_phone_corpus
from voxveil.cli.main import main
from voxveil.config import Params
from voxveil.config.compose import compose, params_text, to_mapping
from voxveil.kubeflow.graph import Pipeline, Task, read_pipeline
from voxveil.kubeflow.local import run_pipeline
from voxveil.kubeflow.steps.running import run_step
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import InputError, ParamsError, VoxveilError
from voxveil.stages.context import StageContext

NAME, SCALE = goldens.FEATURES
IMAGES = ["--images", str(goldens.HERE / "images.lock.json"), "--pipeline", NAME]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return read_pipeline(goldens.compiled(SCALE, NAME))


def titled(pipeline: Pipeline) -> dict[str, Task]:
    return {task.title: task for task in pipeline.tasks}


def test_it_equals_the_reviewed_file() -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    goldens.check(SCALE, NAME)


def test_every_variant_is_trained_once_and_probed_in_every_draw(pipeline: Pipeline) -> None:
    assert set(titled(pipeline)) == {
        "prepare",
        "train_pitch plain",
        "train_pitch contour-10",
        "train_content plain",
        "train_content response-3",
        "probe_pitch plain draw-1",
        *(f"probe_pitch contour-10 draw-{draw}" for draw in (1, 2, 3)),
        "probe_content plain draw-1",
        *(f"probe_content response-3 draw-{draw}" for draw in (1, 2, 3)),
        "probe_gather",
    }
    assert len(pipeline.tasks) == len(titled(pipeline))
    assert pipeline.exit is not None and pipeline.exit.title == "close_run"


def test_a_probe_takes_its_own_model_with_its_digest_and_is_never_cached(pipeline: Pipeline) -> None:
    titles = {task.name: task.title for task in pipeline.tasks}
    for title, task in titled(pipeline).items():
        step, _, rest = title.partition(" ")
        if step not in ("probe_pitch", "probe_content"):
            continue
        variant, draw = rest.split(" draw-")
        kind = step.removeprefix("probe_")
        values = pipeline.resolve(task, {}, _Names(pipeline))
        assert (values["key"], values["draw"]) == (variant, draw)
        for port, producer in (("model", f"train_{kind} {variant}"), ("public", "prepare")):
            source = task.inputs["artifacts"][port]["taskOutputArtifact"]
            assert (titles[source["producerTask"]], source["outputArtifactKey"]) == (producer, port)
            assert values[f"{port}_digest"] == f"{producer}: {port}_digest"
        assert not task.cached
        assert (
            task.kubernetes["nodeSelector"]
            == titled(pipeline)[f"train_{kind} plain"].kubernetes["nodeSelector"]
        )
        assert "secretAsEnv" not in task.kubernetes and "voxveil-gpu@" in task.image


def test_the_gather_gets_the_place_of_every_probe(pipeline: Pipeline) -> None:
    gather = titled(pipeline)["probe_gather"]
    values = pipeline.resolve(gather, {}, _Names(pipeline))
    for kind, noisy in (("pitch", "contour-10"), ("content", "response-3")):
        names = [f"{noisy} draw-{draw}" for draw in (1, 2, 3)]
        wanted = {f"probe_{kind} {name}: probe_location" for name in ("plain draw-1", *names)}
        assert set(values[kind]) == wanted and len(values[kind]) == len(wanted)
    assert gather.inputs.get("artifacts", {}) == {}
    assert not gather.cached and "voxveil-cpu@" in gather.image
    assert [reference["secretName"] for reference in gather.kubernetes["secretAsEnv"]] == ["voxveil-store"]


class _Names(dict[str, Any]):
    """Every output parameter of every task, told apart by name."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(
            (task.name, {name: f"{task.title}: {name}" for name in task.output_parameters})
            for task in pipeline.tasks
        )


def test_the_number_of_draws_is_an_option_of_the_commands(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    (tmp_path / "params.yaml").write_text(params_text(compose(root / f"params/{SCALE}.yaml")))
    source = ["--params", str(tmp_path / "params.yaml"), "--project", str(root), *IMAGES]
    out = tmp_path / "pipeline.yaml"
    assert main(["pipeline", "compile", *source, "--draws", "1", "--out", str(out)]) == 0
    titles = set(titled(read_pipeline(out.read_text(encoding="utf-8"))))
    assert {title for title in titles if title.startswith("probe_") and "draw-" in title} == {
        f"probe_{each} draw-1" for each in ("pitch plain", "pitch contour-10", "content plain")
    } | {"probe_content response-3 draw-1"}
    capsys.readouterr()
    assert main(["pipeline", "compile", *source, "--draws", "0"]) == 2
    assert "--draws must be at least 1, got 0" in capsys.readouterr().err
    assert main(["pipeline", "compile", *source, "--pipeline", "evaluate_external", "--draws", "2"]) == 2
    assert "--draws: pipeline evaluate_external has no draws" in capsys.readouterr().err


def test_gathering_needs_no_torch() -> None:
    code = (
        "import sys\nimport voxveil.research.steps, voxveil.research.probe.experiment_figures\n"
        "print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


# Run whole: made speech for prepare, and the real stages and steps after it, as small as they can be.


class Prepare:
    """A stage prepare whose speech is made here, in a moment."""

    def run(self, context: StageContext) -> None:
        """Write both outputs."""
        public, private = context.outputs["public"], context.outputs["private"]
        write_phone_corpus(public.parent / "made")
        for source, target in (("public", public), ("private", private)):
            shutil.copytree(public.parent / "made" / source, target, dirs_exist_ok=True)
        shutil.rmtree(public.parent / "made")
        content = {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []}
        write_json(public / "corpus.json", content)


def smallest(root: Path) -> Params:
    """Return the scale of the tests of features, in a few steps."""
    params = compose(root / f"params/{SCALE}.yaml")
    few: dict[str, Any] = {
        "base": {"threads": 1},
        "train_pitch": {"steps": 3},
        "train_content": {"steps": 3, "hidden": 16, "factor": 8},
        "asi": {"steps": 4, "channels": 8, "crop_frames": 40},
        "probe": {"tuning": 2},
    }
    changed = {name: dataclasses.replace(getattr(params, name), **knobs) for name, knobs in few.items()}
    return dataclasses.replace(params, **changed)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, pipeline: Pipeline, root: Path) -> dict[str, Path]:
    """Run the compiled file; return the folder of each task."""
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib", reason="needs the plots extra")
    top = tmp_path_factory.mktemp("experiment")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOXVEIL_CHECKPOINTS", str(top / "checkpoints"))
        patch.setenv("VOXVEIL_TRACKING", "off")
        patch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
        patch.setitem(sys.modules, "voxveil.stages.prepare", Prepare())
        arguments = {"params": messages.as_floats(to_mapping(smallest(root)))}
        run_pipeline(pipeline, top, arguments=arguments, report=lambda line: None, execute=messages.here)
    return {task.title: top / task.name for task in pipeline.tasks}


@pytest.mark.torch
def test_what_is_gathered_is_what_the_command_line_makes(
    ran: dict[str, Path], root: Path, tmp_path: Path
) -> None:
    experiment = ran["probe_gather"] / "experiment"
    require_done(experiment, "experiment")
    assert len(read_json(experiment / "outputs/features/results.json")["probes"]) == 8
    assert main(["probe", "gather", str(experiment / "outputs/probe"), "--out", str(tmp_path / "by")]) == 0
    ours, theirs = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (experiment / "outputs/features", tmp_path / "by")
    )
    assert ours == theirs and {"results.json", "index.html", "table.txt", "p_asi.png"} <= set(ours)
    assert (ran["probe_gather"] / "page").read_bytes() == ours["index.html"]

    # A probe too: the same bytes from the command, with noise and without.
    (tmp_path / "params.yaml").write_text(params_text(smallest(root)))
    for kind, variant, draw in (("pitch", "contour-10", 2), ("content", "plain", 1)):
        model = ran[f"train_{kind} {variant}"] / "model"
        words = ["--variant", variant, "--draw", str(draw), "--params", str(tmp_path / "params.yaml")]
        words += ["--public", str(ran["prepare"] / "public"), "--model", str(model)]
        assert main(["probe", kind, *words, "--out", str(tmp_path / kind)]) == 0
        place = experiment / "outputs/probe" / kind / variant / f"draw-{draw}"
        assert (place / "probe.json").read_bytes() == (tmp_path / kind / "probe.json").read_bytes()


@pytest.mark.torch
def test_a_figure_of_the_paper_is_made_of_it(ran: dict[str, Path], tmp_path: Path) -> None:
    experiment = ran["probe_gather"] / "experiment"
    assert main(["reproduce", "dp-fig6", "--features", str(experiment), "--out", str(tmp_path / "fig")]) == 0
    numbers = read_json(tmp_path / "fig/results.json")["numbers"]
    assert "outputs/probe/pitch/contour-10/draw-1/probe.json" in {each["source"]["place"] for each in numbers}


@pytest.mark.torch
def test_a_model_of_another_variant_and_a_draw_that_is_none_are_refused(
    ran: dict[str, Path], root: Path, tmp_path: Path
) -> None:
    artifacts = {"public": ran["prepare"] / "public", "model": ran["train_pitch plain"] / "model"}
    digests = {f"{name}_digest": require_done(path, name).digest for name, path in artifacts.items()}
    params = messages.as_floats(to_mapping(smallest(root)))
    for key, draw, text in (
        ("contour-10", "1", r"needed is that of train_pitch\[contour-10\]"),
        ("plain", "one", "parameter draw must be a whole number, got 'one'"),
        ("plain", "0", "must be at least 1, got 0"),
        ("other", "1", "pitch_variants: no variant 'other'; known: plain, contour-10"),
    ):
        given = {"params": params, "key": key, "draw": draw, **digests}
        call = json.dumps(messages.message("probe_pitch", tmp_path / "out", given, artifacts))
        with pytest.raises(VoxveilError, match=text):
            run_step("probe_pitch", call)
    given = {"params": params, "key": "plain", "draw": "1", **digests, "public_digest": "0" * 64}
    call = json.dumps(messages.message("probe_pitch", tmp_path / "out", given, artifacts))
    with pytest.raises(VoxveilError, match=f"expected {'0' * 64}"):
        run_step("probe_pitch", call)
    assert not (tmp_path / "out/probe").exists()


# What the gather refuses: probes of made numbers.

CORPUS = {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []}
ONE = {"value": 0.5, "ci95": [0.4, 0.6]}
MEASURED = {
    "asi": {"accuracy": 0.5, "p_asi": 0.5, "p_asi_ci95": [0.4, 0.6], "chance": 0.25, "limit": 1.0},
    "epsilon_utterance": {"median": 1.0, "maximum": 1.0},
    **{"correlation": ONE, "tracks": [], "vectors": {"median": 1.0}, "frame_accuracy": {"all": ONE}},
    **{"every": 1, "phones": 40, "phone_frames": 8.0, "frame_chance": 0.2},
}


def entry(folder: Path, kind: str, variant: str, draw: int, stage: str = "") -> str:
    """Write a probe of made numbers; return where it lies."""
    place = folder / kind / variant / str(draw)
    whose = {"kind": kind, "variant": variant, "draw": draw, "mechanism": "laplace", "loss": {"epsilon": 1}}
    write_json(place / "probe.json", {"format": 1, "corpus": CORPUS, **MEASURED, **whose})
    return f"{variant} {place} {finish(place, stage or f'probe_{kind}', variant).digest}"


def test_a_gather_refuses_an_experiment_with_a_hole(root: Path, tmp_path: Path) -> None:
    params = messages.as_floats(to_mapping(compose(root / f"params/{SCALE}.yaml")))
    whole = {
        kind: [entry(tmp_path, kind, "plain", 1), *(entry(tmp_path, kind, noisy, n) for n in (1, 2))]
        for kind, noisy in (("pitch", "contour-10"), ("content", "response-3"))
    }

    def refused(error: type[VoxveilError], text: str, **changes: list[str]) -> None:
        given = {"params": params, **whole, **changes}
        call = json.dumps(messages.message("probe_gather", tmp_path / "out", given, {}))
        with pytest.raises(error, match=text) as caught:
            run_step("probe_gather", call)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out/experiment").exists()

    pitch, content = whole["pitch"], whole["content"]
    refused(
        InputError, r"content response-3: draws \[2\] are there, needed are \[1, 2\]", content=content[::2]
    )
    refused(InputError, "pitch plain, draw 1: is there twice", pitch=[*pitch, pitch[0]])
    refused(ParamsError, "compile the pipeline again with these params", content=content[:1])
    refused(ParamsError, "pitch other", pitch=[*pitch, entry(tmp_path, "pitch", "other", 1)])
    made = entry(tmp_path / "made", "pitch", "plain", 1, "train_pitch")
    refused(InputError, r"pitch plain, draw 1: is output of train_pitch\[plain\]", pitch=[made, *pitch])
    changed = f"{pitch[0].rpartition(' ')[0]} {'0' * 64}"
    refused(InputError, f"expected {'0' * 64}", pitch=[changed, *pitch[1:]])
