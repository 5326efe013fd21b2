"""The root folder of a project, which holds its register of releases and its tracking store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["project_root"]


def project_root(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """Return ``$DVC_ROOT``, else the nearest folder upwards with a dvc.yaml, else the current one."""
    env = os.environ if environ is None else environ
    if env.get("DVC_ROOT"):
        return Path(env["DVC_ROOT"]).absolute()
    here = (Path.cwd() if cwd is None else cwd).absolute()
    return next((folder for folder in (here, *here.parents) if (folder / "dvc.yaml").is_file()), here)
