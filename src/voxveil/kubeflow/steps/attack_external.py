"""Step ``attack_external``: attacks external anonymized speech, as ``voxveil attack`` does.

It trains on a GPU and leaves the scores; judging them (:mod:`voxveil.kubeflow.steps.evaluate_attacks`) takes
none. The speech is fetched into scratch space and goes no further.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

from voxveil.config import Params
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.store import check_reachable, fetch
from voxveil.runtime.atomic import whole_directory
from voxveil.runtime.done import DONE, finish
from voxveil.runtime.errors import InputError, VoxveilError

__all__ = ["CONDITIONS", "AttackError", "attack_options", "run"]

#: In the output: what was attacked and how, as ``voxveil attack`` wrote it.
CONDITIONS = "attack.json"

_ERROR = "voxveil: error: "
#: Parameters that have an option of their own, or none: the attackers are trained on one GPU here.
_NOT_SET = ("kinds", "seeds", "gpus")


class AttackError(VoxveilError):
    """The attack ended without saying why."""

    exit_code = 1


def run(call: StepCall) -> StepResult:
    """Fetch the speech, attack it, and leave the scores."""
    location = call.text("location")
    check_reachable(location)
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        # Its last part names the set in tables.
        name = PurePosixPath(location.partition("?")[0]).name or "speech"
        speech, out = Path(scratch) / "speech" / name, Path(scratch) / "out"
        speech.parent.mkdir()
        fetch(location, speech)
        options = [*attack_options(call.params), "--suffix", str(call.parameters.get("suffix", ""))]
        _attack([str(speech), "--out", str(out), *options], speech, location)
        with whole_directory(call.outputs["scores"]) as folder:
            shutil.copytree(out / "scores", folder, ignore=shutil.ignore_patterns(DONE), dirs_exist_ok=True)
            shutil.copyfile(out / "result.json", folder / CONDITIONS)
            done = finish(folder, call.step, None, "scores")
    return StepResult({"scores": done}, {})


def attack_options(params: Params) -> list[str]:
    """Return the options of ``voxveil attack`` that say the same as the parameters of a chain."""
    attacker = dataclasses.asdict(params.train_attacker)
    options = ["--attackers", attacker["kinds"], "--seeds", str(attacker["seeds"])]
    for name, value in attacker.items():
        if name not in _NOT_SET:
            options += ["--set", f"{name}={json.dumps(value)}"]
    options += ["--seed", str(params.base.seed), "--threads", str(params.base.threads)]
    # Intervals and figures are made by the step that judges.
    return [*options, "--rank-inputs", str(params.score.rank_inputs), "--replicates", "0", "--no-figures"]


def _attack(arguments: list[str], speech: Path, location: str) -> None:
    """Run the command; its output is passed on, and its error becomes this step's."""
    # Without the working directory in the path: its folders are no packages.
    command = [sys.executable, "-P", "-m", "voxveil.cli.main", "attack", *arguments]
    error = ""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stderr or ():
            if line.startswith(_ERROR):
                error = line.removeprefix(_ERROR).strip()
            else:
                sys.stderr.write(line)
    if process.returncode and error:
        raise InputError(error.replace(str(speech), location.rstrip("/")))
    if process.returncode:
        why = f"returned {process.returncode} without a reason: killed, or out of memory"
        raise AttackError(f"{location}: 'voxveil attack' {why}")
