"""Outputs of a DVC experiment or Git revision, copied out of DVC's cache without a checkout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from voxveil.runtime.errors import InputError, import_extra

__all__ = ["fetch_outputs", "knows"]


def knows(root: Path, revision: str) -> bool:
    """Return whether ``root`` is a DVC repository that knows this experiment or revision."""
    if not (root / ".dvc").is_dir():
        return False
    try:
        from dvc.repo import Repo
        from dvc.scm import RevError, resolve_rev
    except ImportError:
        return False
    with Repo(str(root)) as repo:
        try:
            resolve_rev(repo.scm, revision)
        except RevError:
            return False
    return True


def fetch_outputs(
    root: Path | str, revision: str, target: Path, wanted: Iterable[str], optional: Iterable[str] = ()
) -> str:
    """Copy outputs of ``revision`` into ``target``, at the same relative paths; return its commit.

    Args:
        root: The checkout, or the address of a Git repository.
        revision: DVC experiment or Git revision.
        target: Folder to copy into.
        wanted: Files and folders that must be there, relative to the checkout, with ``/``.
        optional: Files and folders that are copied where they can be; a part is never left behind.

    Raises:
        InputError: The revision is unknown, or a wanted output is neither in the cache nor on the remote.
        MissingExtraError: DVC is not installed.
    """
    open_files = import_extra("dvc.api", "data").DVCFileSystem
    from dvc.exceptions import DvcException
    from dvc.scm import RevError
    from scmrepo.exceptions import SCMError

    files = None
    try:
        files = open_files(str(root), rev=revision)
        for name in wanted:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            files.get(name, str(target / name), recursive=True)
        for name in optional:
            _try(files, name, target / name, (DvcException, OSError))
        return str(files.repo.get_rev())
    except RevError:
        raise InputError(
            f"{revision}: neither a DVC experiment nor a Git revision of {root} ('dvc exp show', 'git log')"
        ) from None
    except (DvcException, SCMError, OSError) as error:
        if files is not None and files.isfile("dvc.yaml") and not files.isfile("dvc.lock"):
            raise InputError(
                f"{revision}: its commit holds no dvc.lock, so no outputs belong to it: after 'dvc repro',"
                " 'git add dvc.lock params.yaml' and 'git commit'"
            ) from None
        detail = " ".join(str(error).split())
        raise InputError(f"{revision}: its outputs cannot be read ({detail})") from None


def _try(files: object, name: str, target: Path, faults: tuple[type[Exception], ...]) -> None:
    import shutil

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        files.get(name, str(target), recursive=True)  # type: ignore[attr-defined]
    except faults:
        shutil.rmtree(target, ignore_errors=True)
