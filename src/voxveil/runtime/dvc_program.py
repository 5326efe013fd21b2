"""Calls of the ``dvc`` command-line program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from voxveil.runtime.errors import DataError, InputError, import_extra, one_line

__all__ = ["dvc", "dvc_environment", "require_dvc", "tracked_md5"]

_ERROR = re.compile(r"^ERROR: (.*)$", re.MULTILINE)


def require_dvc() -> None:
    """Raise an error if the ``dvc`` program is not installed.

    Raises:
        MissingExtraError: It is not installed.
    """
    import_extra("dvc", "data")


def dvc_environment() -> dict[str, str]:
    """Return the environment variables for DVC, added to those of the user."""
    # Servers of S3's kind often refuse the trailing checksums that newer clients send unasked.
    defaults = {
        "DVC_NO_ANALYTICS": "1",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    }
    return {**defaults, **os.environ}


def dvc(root: Path, *arguments: str) -> str:
    """Run ``dvc ARGUMENTS`` in ``root``, waiting for another DVC to end, and return its output.

    Raises:
        DataError: With DVC's own reason in one line.
        MissingExtraError: DVC is not installed.
    """
    require_dvc()
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "--wait-for-lock", *arguments],
        cwd=root,
        env=dvc_environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if result.returncode == 0:
        return result.stdout
    reasons = _ERROR.findall(result.stderr) or [result.stderr.strip() or "failed"]
    raise DataError(f"dvc {arguments[0]}: {one_line('; '.join(reasons))}")


def tracked_md5(path: Path) -> str:
    """Return the digest of the data that a ``.dvc`` file points to.

    Raises:
        InputError: It is no such file.
    """
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return str(content["outs"][0]["md5"])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; 'voxveil data add' makes it") from None
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError):
        raise InputError(f"{path}: not a file of DVC with an md5") from None
