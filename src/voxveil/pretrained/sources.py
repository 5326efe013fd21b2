"""Sources of pretrained weights: a folder, an installed package, or a hub at a pinned revision.

A source is only read. Nothing of it is imported or executed, and nothing is downloaded that the caller has
not named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from voxveil.runtime.errors import InputError, one_line

__all__ = ["Source", "find_source"]

_HUB = re.compile(r"hub:([\w.-]+/[\w.-]+)@([0-9a-f]{40})\Z")
_PACKAGE = re.compile(r"package:([A-Za-z_]\w*)((?:/[^/]+)*)\Z")


@dataclass(frozen=True)
class Source:
    """Files of a model before the import.

    Attributes:
        folder: The folder that holds the files.
        address: Where they come from, with version or revision and without paths of this machine.
        licence: Licence that the source states, empty if it states none.
    """

    folder: Path
    address: str
    licence: str = ""


def find_source(text: str, patterns: Sequence[str]) -> Source:
    """Return the source that ``text`` names, downloaded where it is on a hub.

    Args:
        text: A folder, ``package:MODULE/SUBFOLDER``, or ``hub:OWNER/NAME@REVISION`` with the 40 hexadecimal
            digits of a commit.
        patterns: File name patterns that the architecture needs; nothing else is downloaded.

    Raises:
        InputError: The source is malformed, absent, or cannot be reached.
    """
    if text.startswith("package:"):
        return _package(text)
    if text.startswith("hub:"):
        return _hub(text, patterns)
    folder = Path(text)
    if not folder.is_dir():
        raise InputError(
            f"{text}: must be a folder, package:MODULE/SUBFOLDER or hub:OWNER/NAME@REVISION; no such folder"
        )
    return Source(folder, f"folder {folder.resolve().name}")


def _package(text: str) -> Source:
    found = _PACKAGE.match(text)
    if found is None or ".." in PurePosixPath(found[2]).parts:
        raise InputError(f"{text}: must be package:MODULE or package:MODULE/SUBFOLDER")
    module, below = found[1], found[2].lstrip("/")
    spec = find_spec(module)
    locations = list(spec.submodule_search_locations or []) if spec else []
    if not locations:
        raise InputError(f"{text}: no package {module!r} is installed; install it with pip")
    folder = Path(locations[0]) / below
    if not folder.is_dir():
        raise InputError(f"{text}: package {module} has no folder {below!r}")
    names = metadata.packages_distributions().get(module, [])
    if not names:
        return Source(folder, f"package {module}: {below or '.'}")
    about = metadata.metadata(names[0]).json
    stated = [
        text.rpartition("::")[2].strip() for text in about.get("classifier", ()) if "License ::" in text
    ]
    licence = str(about.get("license_expression") or about.get("license") or ", ".join(stated))
    return Source(folder, f"package {names[0]}=={about['version']}: {below or '.'}", one_line(licence))


def _hub(text: str, patterns: Sequence[str]) -> Source:
    found = _HUB.match(text)
    if found is None:
        raise InputError(
            f"{text}: must be hub:OWNER/NAME@REVISION, with the 40 hexadecimal digits of a commit as REVISION"
        )
    name, revision = found.groups()
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(
            f"{text}: huggingface_hub is not installed; pip install huggingface_hub, or import from a folder"
        ) from None
    try:
        folder = snapshot_download(name, revision=revision, allow_patterns=[*patterns, "README.md"])
    except Exception as error:  # the hub's client raises errors of several libraries
        reason = one_line(error) or type(error).__name__
        raise InputError(
            f"{text}: cannot be downloaded ({reason}); download {', '.join(patterns)} of that revision on a"
            " machine with internet and import from the folder"
        ) from None
    return Source(Path(folder), f"hub {name}@{revision}", _card_licence(Path(folder) / "README.md"))


def _card_licence(path: Path) -> str:
    """Return the licence that the head of a model card states."""
    if not path.is_file():
        return ""
    found = re.search(r"^license:\s*(\S+)", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return found[1] if found else ""
