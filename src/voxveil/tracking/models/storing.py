"""Storage of a model at a shared address: S3, or DVC at a commit."""

from __future__ import annotations

from pathlib import Path

from voxveil.runtime.checksums import SUMS, parse_sums
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError, import_extra
from voxveil.runtime.git import ask_git
from voxveil.runtime.s3 import S3Uri, s3_client, s3_faults
from voxveil.tracking.models.addresses import DVCAddress
from voxveil.tracking.models.contents import read_contents
from voxveil.tracking.store import warn, without_credentials

__all__ = ["dvc_address", "upload"]


def upload(folder: Path, prefix: S3Uri) -> S3Uri:
    """Copy a model to ``PREFIX/DIGEST`` and return that; SHA256SUMS goes last, so a part is never a model.

    Raises:
        InputError: Neither a bundle nor an imported model, or the store refuses.
    """
    description = read_contents(folder).description
    sums = parse_sums((folder / SUMS).read_text(encoding="utf-8"), str(folder / SUMS), description)
    address = prefix.below(file_sha256(folder / SUMS))
    with s3_faults(address, "written"):
        client = s3_client()
        for name in (*sums, SUMS):
            client.put_object(Bucket=address.bucket, Key=address.key(name), Body=(folder / name).read_bytes())
    return address


def dvc_address(folder: Path) -> DVCAddress:
    """Return the address of a model that DVC tracks, at the checked-out commit.

    The repository is the remote ``origin``, or this checkout where there is none: others cannot fetch from
    the latter. A commit that is on no branch of ``origin`` is warned of, as far as this clone knows.

    Raises:
        InputError: The folder is in no Git repository, or the commit holds another model.
        MissingExtraError: DVC is not installed.
    """
    folder = folder.resolve()
    hint = "--to s3://BUCKET/PREFIX uploads it"
    top = ask_git(folder, "rev-parse", "--show-toplevel").line
    commit = ask_git(folder, "rev-parse", "HEAD").line
    if not top or not commit or not (Path(top) / ".dvc").is_dir():
        raise InputError(f"{folder}: in no DVC repository with a commit; {hint}")
    path = folder.relative_to(top).as_posix()
    if _committed(Path(top), commit, path) != (folder / SUMS).read_bytes():
        raise InputError(
            f"{folder}: is not what commit {commit[:12]} holds (commit dvc.lock, 'dvc push'); or {hint}"
        )
    origin = ask_git(folder, "remote", "get-url", "origin").line
    if origin.startswith(("http://", "https://")):
        origin = without_credentials(origin)
    if origin and not ask_git(folder, "branch", "--remotes", "--contains", commit, "--list", "origin/*").line:
        warn(
            f"commit {commit[:12]} is on no branch of {origin}: until 'git push' and 'dvc push' nobody else"
            " can fetch this model"
        )
    return DVCAddress(origin or top, commit, path)


def _committed(root: Path, commit: str, path: str) -> bytes | None:
    open_files = import_extra("dvc.api", "data").DVCFileSystem
    from dvc.exceptions import DvcException

    try:
        with open_files(str(root), rev=commit).open(f"{path}/{SUMS}", "rb") as handle:
            return bytes(handle.read())
    except (DvcException, OSError):
        return None
