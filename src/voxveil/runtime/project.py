"""The root folder of a project, which holds its register of releases and its tracking store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["nearest_above", "project_root"]


def project_root(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """Return ``$DVC_ROOT``, else the nearest folder upwards with a dvc.yaml, else the current one."""
    env = os.environ if environ is None else environ
    if env.get("DVC_ROOT"):
        return Path(env["DVC_ROOT"]).absolute()
    here = (Path.cwd() if cwd is None else cwd).absolute()
    return nearest_above(here, "dvc.yaml") or here


def nearest_above(start: Path, name: str) -> Path | None:
    """Return ``start`` or its nearest parent that holds ``name``, None without one."""
    return next((folder for folder in (start, *start.parents) if (folder / name).exists()), None)
