"""``dvc repro`` for the commands that run a whole pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from voxveil.runtime.errors import InputError, VoxveilError

__all__ = ["PipelineError", "dvc_environment", "dvc_program", "reproduce"]


class PipelineError(VoxveilError):
    """A stage of the pipeline failed; its own message stands above."""

    exit_code = 1


def dvc_program() -> Path:
    """Return the ``dvc`` of this environment."""
    dvc = Path(sys.executable).with_name("dvc")
    if not dvc.is_file():
        raise InputError(f"{dvc}: does not exist; dvc comes with: pip install 'voxveil[data]'")
    return dvc


def dvc_environment() -> dict[str, str]:
    """Return the environment for DVC: our programs first, nothing phones home."""
    environment = dict(os.environ)
    environment["PATH"] = f"{dvc_program().parent}{os.pathsep}{environment.get('PATH', '')}"
    environment.update(DVC_NO_ANALYTICS="1", DO_NOT_TRACK="1", MLFLOW_DISABLE_TELEMETRY="true")
    return environment


def reproduce(folder: Path, *targets: str) -> None:
    """Run ``dvc repro`` in ``folder``: finished stages are kept.

    Raises:
        PipelineError: A stage failed.
    """
    command = [str(dvc_program()), "repro", *targets]
    status = subprocess.run(command, cwd=folder, env=dvc_environment(), check=False).returncode
    if status:
        raise PipelineError(
            f"'dvc repro' failed with status {status}; the failed stage and its message are printed above."
            " Correct it and run the same command again: finished stages are kept"
        )
