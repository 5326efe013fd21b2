"""Files from outside of the checkout that tests also run on, where they are there.

A test that can run on files made on the spot always does; where files are given it runs on those as well.
Only a test whose claim is about real speech has nothing else, and is skipped without.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DATA", "REFERENCE", "given_folder", "sources"]

ROOT = Path(__file__).resolve().parents[1]

#: Variable and folder beside the checkout of speech (``LibriSpeech``, ``edge``).
DATA = ("VOXVEIL_TEST_DATA", "shared/data")
#: Variable and folder beside the checkout of values by others (``metrics``).
REFERENCE = ("VOXVEIL_TEST_REFERENCE", "shared/reference")


def given_folder(place: tuple[str, str], name: str) -> Path | None:
    """Return a folder of :data:`DATA` or :data:`REFERENCE`, None where it is not there."""
    variable, default = place
    folder = Path(os.environ.get(variable) or ROOT.parent / default) / name
    return folder if folder.is_dir() else None


def sources(place: tuple[str, str], name: str) -> list[str]:
    """Return the parameters of a test that makes its files, and takes those that are given too."""
    return ["made", "given"] if given_folder(place, name) else ["made"]
