"""Copy the source files of a checkout, without anything that a run of the pipeline left in it.

``tests/in_copy.sh`` runs the suite in such a copy, and the end-to-end tests run the chain in one. The copy
holds what Git tracks, and new files of the person at work in the folders of the source. It never holds the
products of runs: ``dvc.lock`` is left out even where it is committed, as the README's daily work asks, and
``params.yaml`` is composed afresh from ``params/quickstart.yaml``, so an edited one changes no test.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: The scale that the committed ``params.yaml`` is composed from.
SCALE = "quickstart"
#: Files that a run writes, tracked by Git or not.
PRODUCTS = ("dvc.lock", "params.yaml")


def source_files(root: Path) -> Iterator[Path]:
    """Yield the source files of the checkout ``root``, relative to it.

    An untracked file counts as source if Git does not ignore it and its top-level folder holds tracked
    files. Untracked files beside these folders are recordings, results or notes.

    Raises:
        subprocess.CalledProcessError: ``root`` is not in a Git checkout.
    """
    tracked = _listed(root, "--cached")
    folders = {path.parts[0] for path in tracked if len(path.parts) > 1}
    untracked = [path for path in _listed(root, "--others", "--exclude-standard") if path.parts[0] in folders]
    for path in sorted({*tracked, *untracked}):
        if path.as_posix() not in PRODUCTS and (root / path).is_file():
            yield path


def copy_source(root: Path, target: Path) -> Path:
    """Copy the source files of ``root`` into the empty folder ``target``, commit them, return ``target``."""
    for path in source_files(root):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, target / path)
    compose = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1] + '/src');"
        "from voxveil.config.compose import use_overlay; use_overlay(sys.argv[2], Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", compose, str(target), SCALE], check=True)
    for command in (
        ["init", "-q"],
        # DVC's experiments commit too, and a person may not have told Git who commits.
        ["config", "user.name", "test"],
        ["config", "user.email", "test@localhost"],
        ["add", "-A"],
        ["commit", "-qm", "start"],
    ):
        subprocess.run(["git", *command], cwd=target, check=True)
    return target


def _listed(root: Path, *options: str) -> list[Path]:
    found = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=root, capture_output=True, check=True
    ).stdout.decode("utf-8", "surrogateescape")
    return [Path(name) for name in found.split("\0") if name]


if __name__ == "__main__":
    copy_source(Path(sys.argv[1]), Path(sys.argv[2]))
