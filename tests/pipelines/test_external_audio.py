"""Somebody else's anonymized speech: the step that attacks it, and the one that judges the attacks."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import messages
import pytest

from made_outputs import Made, make_outputs
from voxveil.cli import attack
from voxveil.config.compose import params_text, to_mapping
from voxveil.kubeflow.steps.attack_external import CONDITIONS, attack_options
from voxveil.kubeflow.steps.running import run_step
from voxveil.metrics.attacked import evaluate_attack
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import InputError

TINY = messages.tiny_params()
QUICK = dataclasses.replace(TINY, evaluate=dataclasses.replace(TINY.evaluate, replicates=20))


def test_the_command_is_given_what_the_parameters_say() -> None:
    attacker = dataclasses.replace(
        TINY.train_attacker,
        kinds="ecapa,prosody",
        speeds="1",
        learning_rate=1e-5,
        fusion_speakers=2,
        wavlm="a folder",
        seeds=3,
        gpus=4,
    )
    score = dataclasses.replace(TINY.score, rank_inputs=7)
    params = dataclasses.replace(TINY, train_attacker=attacker, score=score)
    parser = argparse.ArgumentParser()
    attack.add_arguments(parser)
    args = parser.parse_args(["theirs", "--out", "out", *attack_options(params)])
    # Seeds have an option of their own; one GPU is what the pod has.
    assert attack._params(args) == dataclasses.replace(attacker, seeds=1, gpus=1)
    assert (args.seeds, args.rank_inputs) == (3, 7)
    assert (args.seed, args.threads) == (params.base.seed, params.base.threads)


def attacked(folder: Path, sets: dict[str, Path]) -> Path:
    """Write what ``attack_external`` leaves, of finished scores ``ecapa/semi_informed``."""
    described = []
    for name, scores in sets.items():
        shutil.copytree(scores / "ecapa/semi_informed", folder / name / "ecapa/semi_informed")
        summary = {"attacker": "ecapa", "scenario": "semi_informed"}
        described.append({"set": name, "attacks": [summary], "speakers": {"train": 6, "test": 8}})
    content = {"format": 1, "layout": "plain", "notes": ["taken as it is"], "replicates": 0}
    write_json(folder / CONDITIONS, {**content, "sets": described})
    finish(folder, "attack_external", None, "scores")
    return folder


def judge(scores: Path, out: Path) -> dict[str, Any]:
    """Run the step on the scores; return its result."""
    params = messages.as_floats(to_mapping(QUICK))
    parameters = {"params": params, "scores_digest": require_done(scores, "scores").digest}
    call = messages.message("evaluate_attacks", out, parameters, {"scores": scores})
    assert run_step("evaluate_attacks", json.dumps(call)) == 0
    require_done(out / "result", "result")
    return read_json(out / "result/result.json")


def test_attacks_are_judged_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs the plots extra")
    systems = {"original": Made(4.0, kind="original"), "anon_dp": Made(1.0)}
    make_outputs(tmp_path, systems, samples=False)
    folder = tmp_path / "outputs/score/anon_dp"
    options = SuiteOptions(replicates=20, seed=TINY.base.seed)
    full, shown = evaluate_attack(folder / "ecapa/semi_informed", options)

    result = judge(attacked(tmp_path / "one", {"theirs": folder}), tmp_path / "out")
    (judged,) = result["sets"][0]["attacks"]
    assert judged["metrics"]["eer"] == json.loads(json.dumps(shown["metrics"]["eer"]))
    assert judged["metrics"]["eer"]["ci95"] is not None
    assert result["replicates"] == 20
    assert result["notes"] == ["taken as it is"]
    flat = read_json(tmp_path / "out/flat")
    assert flat["privacy/eer"] == full["metrics"]["eer"]["value"]
    assert (tmp_path / "out/result/figures/theirs.png").stat().st_size > 1000
    assert "theirs: 8 speakers, attackers trained on 6" in capsys.readouterr().out

    two = attacked(tmp_path / "two", {"dev": folder, "test": tmp_path / "outputs/score/original"})
    assert [each["set"] for each in judge(two, tmp_path / "both")["sets"]] == ["dev", "test"]
    flat = read_json(tmp_path / "both/flat")
    assert flat["dev/privacy/eer"] == full["metrics"]["eer"]["value"] > flat["test/privacy/eer"]


def test_scores_of_another_step_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "scores" / CONDITIONS, {})
    finish(tmp_path / "scores", "score", "anon", "scores")
    parameters = {"params": messages.tiny(), "scores_digest": require_done(tmp_path / "scores", "s").digest}
    call = messages.message("evaluate_attacks", tmp_path / "out", parameters, {"scores": tmp_path / "scores"})
    with pytest.raises(InputError, match="must be output of attack_external, is output of score"):
        run_step("evaluate_attacks", json.dumps(call))
    assert not (tmp_path / "out/result").exists()


@pytest.mark.torch
def test_a_folder_that_cannot_be_attacked_is_named_by_its_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/readme").write_text("x")
    parameters = {"params": messages.tiny(), "location": str(tmp_path / "theirs"), "suffix": ""}
    call = messages.message("attack_external", tmp_path / "out", parameters, {})
    with pytest.raises(InputError, match=f"^{tmp_path / 'theirs'}: nothing to attack") as error:
        run_step("attack_external", json.dumps(call))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out/scores").exists()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
@pytest.mark.torch
def test_speech_goes_in_and_judged_attacks_come_out(tmp_path: Path, root: Path) -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    from made_external import write_external

    write_external(tmp_path / "theirs")
    attacker = dataclasses.replace(TINY.train_attacker, kinds="f0_histogram,xvector_plda", steps=8, lda=4)
    params = dataclasses.replace(QUICK, train_attacker=attacker)
    (tmp_path / "params.yaml").write_text(params_text(params))
    command = ["pipeline", "run", "--local", "--no-docker", "--pipeline", "evaluate_external_audio"]
    command += ["--params", "params.yaml", "--root", "run", "--project", str(root)]
    command += ["--set", f"location={tmp_path / 'theirs'}"]
    code = "import sys; from voxveil.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (result,) = (tmp_path / "run").glob("evaluate-attacks*/result/result.json")
    (judged,) = read_json(result)["sets"]
    assert (judged["set"], judged["speakers"]) == ("theirs", {"train": 6, "test": 4})
    scenarios = ["original", "ignorant", "lazy_informed", "semi_informed"]
    found = [(attack["attacker"], attack["scenario"]) for attack in judged["attacks"]]
    assert found == [(kind, name) for kind in ("f0_histogram", "xvector_plda") for name in scenarios]
    assert all(0 <= attack["metrics"]["eer"]["value"] <= 100 for attack in judged["attacks"])
