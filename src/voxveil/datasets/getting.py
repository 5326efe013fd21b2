"""Download of one version of a dataset by Git revision, without a clone of the repository."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voxveil.corpus.opening import open_folder
from voxveil.datasets.dataset import FOLDER, check_name
from voxveil.datasets.face import Face, manifest_text, parse_face, parse_manifest
from voxveil.datasets.packing import corpus_rows
from voxveil.runtime.atomic import whole_directory
from voxveil.runtime.dvc_program import dvc_environment, require_dvc
from voxveil.runtime.errors import DataError, InputError, PrivacyError, one_line

__all__ = ["get_version"]


def get_version(
    repository: str, name: str, revision: str, out: Path, *, public_only: bool = False
) -> tuple[Face, str]:
    """Write version ``revision`` of dataset ``name`` to ``out``, atomically.

    Every file is held against the manifest of that version before ``out`` appears.

    Args:
        repository: URL or path of a Git repository with DVC.
        name: Name of the dataset.
        revision: Branch, tag or commit.
        out: A folder that does not exist or is empty.
        public_only: Refuse a dataset that is not declared public.

    Returns:
        Its summary, and the commit that the revision stands for.

    Raises:
        InputError: ``out`` holds something, there is no such dataset, or its data contradict its manifest.
        PrivacyError: ``public_only``, and the dataset is not declared public; no speech was fetched.
        DataError: No such repository or revision, an object that the remote lacks (named), or a
            remote out of reach.
    """
    require_dvc()
    check_name(name)
    if revision.startswith("-") or repository.startswith("-"):
        raise InputError(f"{repository}@{revision}: repository and revision must not begin with '-'")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; name a new one")
    where = f"{repository}@{revision}"
    with _opened(repository, revision) as files:
        face, manifest = _face(files, name, where)
        if public_only and not face.public:
            raise PrivacyError(f"{where}: dataset {name} is not declared public ({FOLDER}/{name}.json)")
        commit = str(files.repo.get_rev())
        with whole_directory(out) as folder:
            _download(files, f"{FOLDER}/{name}", folder, where)
            _check(folder, out, manifest, where, name)
    return face, commit


@contextmanager
def _opened(repository: str, revision: str) -> Iterator[Any]:
    for key, value in dvc_environment().items():
        os.environ.setdefault(key, value)
    logging.getLogger("dvc").setLevel(logging.CRITICAL)
    from dvc.api import DVCFileSystem
    from dvc.repo.open_repo import clean_repos

    try:
        try:
            files = DVCFileSystem(repository, rev=revision)
            # It is opened only when asked for.
            files.repo.get_rev()
        except Exception as error:  # DVC, Git and network faults have no common base
            raise DataError(f"{repository}@{revision}: cannot be opened ({_reason(error)})") from None
        try:
            yield files
        finally:
            files.close()
    finally:
        # Else a clone, and speech, would stay in the folder of temporary files.
        clean_repos()


def _face(files: Any, name: str, where: str) -> tuple[Face, str]:
    texts = {}
    for suffix in (".json", ".manifest.tsv"):
        path = f"{FOLDER}/{name}{suffix}"
        try:
            with files.open(path, mode="r", encoding="utf-8", newline="") as handle:
                texts[suffix] = handle.read()
        except (FileNotFoundError, IsADirectoryError):
            raise InputError(f"{where}: holds no dataset {name!r} (no {path})") from None
        except Exception as error:
            raise DataError(f"{where}: {path} cannot be read ({_reason(error)})") from None
    face = parse_face(texts[".json"], f"{where}: {FOLDER}/{name}.json")
    rows = parse_manifest(texts[".manifest.tsv"], f"{where}: {FOLDER}/{name}.manifest.tsv")
    return face, manifest_text(rows)


def _download(files: Any, path: str, folder: Path, where: str) -> None:
    listed: dict[str, Any] = {}
    try:
        listed = files.find(path, detail=True)
        if not listed:
            raise FileNotFoundError(2, "no list of files", path)
        with tempfile.TemporaryDirectory(dir=folder) as inner:
            target = Path(inner) / "data"
            files.get(path, str(target), recursive=True)
            for child in sorted(target.iterdir()):
                child.rename(folder / child.name)
    except Exception as error:  # DVC, S3 and network faults have no common base
        raise DataError(f"{where}: {_lacking(error, listed, path)}; nothing was written") from None
    missing = [name for name in sorted(listed) if not (folder / Path(name).relative_to(path)).is_file()]
    if missing:
        object_id = listed[missing[0]].get("md5")
        raise DataError(f"{where}: {missing[0]} (object {object_id}) was not fetched; nothing was written")


def _lacking(error: Exception, listed: dict[str, Any], path: str) -> str:
    absent = next((cause for cause in _causes(error) if isinstance(cause, FileNotFoundError)), None)
    if absent is None:
        return f"{path} cannot be fetched ({_reason(error)})"
    named = str(absent.filename or path)
    found = listed.get(named)
    what = f"{named} (object {found.get('md5')})" if found else f"{path}: {named}"
    return f"the remote lacks {what}; 'dvc push --all-commits' where it was made"


def _check(folder: Path, out: Path, manifest: str, where: str, name: str) -> None:
    try:
        rows = corpus_rows(open_folder(folder), lambda _: None)
    except InputError as error:
        raise InputError(
            f"{where}: {str(error).replace(str(folder), str(out))}; nothing was written"
        ) from None
    if manifest_text(rows) != manifest:
        raise InputError(f"{where}: the data of {name} do not match its manifest; nothing was written")


def _reason(error: BaseException) -> str:
    texts = [one_line(cause) for cause in _causes(error) if str(cause).strip()]
    return one_line("; ".join(dict.fromkeys(texts[:2]))) or type(error).__name__


def _causes(error: BaseException) -> list[BaseException]:
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    return causes
