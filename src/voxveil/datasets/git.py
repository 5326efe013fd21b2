"""Read-only Git queries for datasets; a failure is a one-line error."""

from __future__ import annotations

from pathlib import Path

from voxveil.runtime.errors import DataError, one_line
from voxveil.runtime.git import NOT_INSTALLED, ask_git

__all__ = ["file_at", "files_at", "git", "refs", "resolve"]


def git(root: Path, *arguments: str) -> str:
    """Run ``git ARGUMENTS`` in ``root`` and return its output.

    Raises:
        DataError: With Git's own reason, and what to do where the tree belongs to somebody else.
    """
    answer = ask_git(root, *arguments)
    if answer.status == 0:
        return answer.text
    if answer.status == NOT_INSTALLED:
        raise DataError(f"{answer.reason}; dataset versions are found through it")
    if "dubious ownership" in answer.reason:
        raise DataError(
            f"{root}: belongs to another user, so git refuses it; if you trust it:"
            f" git config --global --add safe.directory {root}"
        )
    if "not a git repository" in answer.reason:
        raise DataError(
            f"{root}: not a git repository; dataset versions are git revisions"
            " ('voxveil data get --repo URL' fetches one without a clone)"
        )
    raise DataError(f"git {arguments[0]}: {one_line(answer.reason) or 'failed'}")


def resolve(root: Path, revision: str) -> str:
    """Return the full commit id of a revision.

    Raises:
        DataError: There is no such revision.
    """
    if revision.startswith("-"):
        raise DataError(f"{revision!r}: not a git revision")
    git(root, "rev-parse", "--git-dir")
    try:
        return git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
    except DataError:
        raise DataError(f"{revision}: no such git revision here (git fetch first?)") from None


def files_at(root: Path, revision: str, folder: str) -> list[str]:
    """Return the names of the files directly in ``folder`` at a revision, sorted; none if it is absent."""
    listed = git(root, "ls-tree", "-z", "--name-only", revision, f"./{folder}/")
    return sorted(Path(path).name for path in listed.split("\0") if path)


def file_at(root: Path, revision: str, path: str) -> str:
    """Return the text of a file (path relative to ``root``) at a revision."""
    return git(root, "show", f"{revision}:./{path}")


def refs(root: Path) -> dict[str, str]:
    """Return every branch, remote branch and tag (full name) with its commit."""
    form = "%(refname) %(objectname) %(*objectname) %(symref)"
    found = {}
    for line in git(
        root, "for-each-ref", f"--format={form}", "refs/heads", "refs/remotes", "refs/tags"
    ).split("\n"):
        name, _, rest = line.partition(" ")
        commit, _, more = rest.partition(" ")
        peeled, _, symbolic = more.partition(" ")
        if name and not symbolic:
            found[name] = peeled or commit
    return found
