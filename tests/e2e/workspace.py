"""Commands in a checkout that the chain runs in, and helpers to look at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from voxveil.stages.registry import STAGES

BIN = Path(sys.executable).parent


#: The trainings of what anonymizes, and their steps in tests. Released speech is worse after so few, and is
#: attacked and measured as ever.
ANONYMIZING = [spec.name for spec in STAGES if spec.trains and spec.name != "train_attacker"]
STEPS = 10


def environment(root: Path, **extra: str) -> dict[str, str]:
    """Return the environment of a user who activated the virtual environment."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "VOXVEIL_", "DVC_", "AWS_"))}
    env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = str(root / "src")
    env.update(DVC_NO_ANALYTICS="1", DO_NOT_TRACK="1", MLFLOW_DISABLE_TELEMETRY="true", **extra)
    return env


def run(root: Path, *command: str, check: bool = True, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the workspace; a failure shows what it printed."""
    result = subprocess.run(
        command, cwd=root, env=environment(root, **extra), capture_output=True, text=True, check=False
    )
    if check and result.returncode:
        raise AssertionError(
            f"{command} -> {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        )
    return result


def locked(root: Path) -> dict[str, dict]:
    """Return dvc.lock's stages."""
    return yaml.safe_load((root / "dvc.lock").read_text())["stages"]


def outputs(root: Path, stage: str) -> dict[str, str]:
    """Return the digest of every output of a stage by path."""
    return {out["path"]: out["md5"] for out in locked(root)[stage]["outs"]}
