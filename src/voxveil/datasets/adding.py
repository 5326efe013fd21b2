"""Registration of a corpus as the next version of a dataset."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from voxveil.corpus.download import extract_archive
from voxveil.corpus.opening import open_folder
from voxveil.corpus.source import Source
from voxveil.datasets.dataset import FOLDER, Dataset, check_name, one_at_a_time, refuse_merge_marks
from voxveil.datasets.face import Face, Row, Storage, face_text, manifest_text, parse_face, summary
from voxveil.datasets.git import git
from voxveil.datasets.packing import (
    MOST_FILES,
    Report,
    copy_corpus,
    corpus_files,
    corpus_rows,
    pack_corpus,
    require_inside,
)
from voxveil.runtime.atomic import whole_directory, write_text
from voxveil.runtime.dvc_program import dvc, require_dvc, tracked_md5
from voxveil.runtime.errors import DataError, InputError

__all__ = ["add_dataset", "finish_version", "import_dataset", "ready", "require_unchanged"]

#: Makes a report of progress for so many clips.
Reports = Callable[[int], Report]


def add_dataset(
    root: Path, name: str, folder: Path, *, public: bool | None, shards: bool, reports: Reports
) -> Face:
    """Register the corpus in ``folder`` as the next version of dataset ``name``.

    Nothing is committed: Git's part is the person's, after a look at the manifest.

    Args:
        root: Folder that holds ``.dvc``.
        name: Name of the dataset.
        folder: LibriSpeech, LibriTTS or Kaldi layout; it is copied, and may be ``data/NAME`` itself.
        public: None keeps what the version before said; a first version is public.
        shards: Store as tar shards even if there are few files.
        reports: Told the progress.

    Returns:
        The summary of the new version.

    Raises:
        InputError: The corpus cannot be used, or what lies in ``data/NAME`` would be lost.
        DataError: Git or DVC refuses.
    """
    dataset = ready(root, name)
    source = open_folder(folder)
    seen = visibility(dataset, public)
    here = dataset.folder.exists() and dataset.folder.resolve() == folder.resolve()
    packed = shards or source.shards is not None or len(corpus_files(folder)) > MOST_FILES
    with one_at_a_time(root):
        if not here:
            require_unchanged(dataset)
        if packed:
            rows = _packed(dataset, source, reports)
        else:
            require_inside(source, folder)
            rows = corpus_rows(source, reports(len(source.clips)))
            _copied(dataset, source, folder, rows, here)
        return finish_version(dataset, rows, public=seen, storage="shards" if packed else "files")


def ready(root: Path, name: str) -> Dataset:
    """Return the paths of dataset ``name`` after every check that needs no data.

    Raises:
        InputError: The name, or the marks of a merge.
        DataError: There is no Git repository.
    """
    dataset = Dataset(root, check_name(name))
    require_dvc()
    git(root, "rev-parse", "--git-dir")
    refuse_merge_marks(dataset)
    return dataset


def visibility(dataset: Dataset, public: bool | None) -> bool:
    """Return whether the next version is public: as stated, else as before, else public.

    Raises:
        InputError: ``public`` was asked for, and the version before is private.
    """
    if not dataset.summary.is_file():
        return public is not False
    before = parse_face(dataset.summary.read_text(encoding="utf-8"), str(dataset.summary)).public
    if public and not before:
        raise InputError(
            f"dataset {dataset.name}: is private; a public one needs another name (its history names private"
            " speakers)"
        )
    return before if public is None else public


def require_unchanged(dataset: Dataset) -> None:
    """Raise an error if the folder's content is in no version and would be lost.

    Raises:
        InputError: Saying how to keep it.
    """
    if not dataset.folder.exists() or dataset.unfinished.exists():
        return
    if not dataset.tracked.is_file():
        raise InputError(
            f"{dataset.folder}: exists and is in no version; 'voxveil data add {dataset.name}"
            f" {FOLDER}/{dataset.name}' registers it, or move it away"
        )
    changed = json.loads(dvc(dataset.root, "status", "--json", f"{FOLDER}/{dataset.tracked.name}") or "{}")
    if changed:
        raise InputError(
            f"{dataset.folder}: was changed since it was added; 'voxveil data add {dataset.name}"
            f" {FOLDER}/{dataset.name}' registers that, 'dvc checkout --force"
            f" {FOLDER}/{dataset.tracked.name}' drops it"
        )


def finish_version(dataset: Dataset, rows: list[Row], *, public: bool, storage: Storage) -> Face:
    """Give ``data/NAME`` to DVC and write manifest and summary; killed before its end, run it again.

    A fault on the way (a full disk, say) leaves what Git sees as it was.
    """
    _begin(dataset)
    theirs = (dataset.tracked, dataset.manifest, dataset.summary)
    before = {path: path.read_bytes() if path.is_file() else None for path in theirs}
    try:
        dvc(dataset.root, "add", f"{FOLDER}/{dataset.name}")
        face = summary(
            dataset.name, rows, public=public, storage=storage, dvc_md5=tracked_md5(dataset.tracked)
        )
        write_text(dataset.manifest, manifest_text(rows))
        write_text(dataset.summary, face_text(face))
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != content:
                # In place: a full disk has no room for a second file.
                path.write_bytes(content)
        raise
    dataset.unfinished.unlink()
    return face


def _begin(dataset: Dataset) -> None:
    dataset.unfinished.parent.mkdir(parents=True, exist_ok=True)
    dataset.unfinished.touch()


def _packed(dataset: Dataset, source: Source, reports: Reports) -> list[Row]:
    with whole_directory(dataset.folder) as out:
        rows = pack_corpus(source, out, source.clips, reports(len(source.clips)))
        _begin(dataset)
    return rows


def _copied(dataset: Dataset, source: Source, folder: Path, rows: list[Row], here: bool) -> None:
    if not here:
        with whole_directory(dataset.folder) as out:
            copy_corpus(source, folder, out, rows)
            _begin(dataset)
        return
    table = folder / "wav.scp"
    for line in table.read_text(encoding="utf-8").split("\n") if table.is_file() else ():
        utterance, _, path = line.strip().partition(" ")
        if path.strip().startswith("/"):
            raise InputError(f"{table}: utterance {utterance} has an absolute path; it must be relative")


_ARCHIVE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\.tar\.gz\Z")
_MD5 = re.compile(r"[0-9a-f]{32}\Z")


def import_dataset(
    root: Path, name: str, url: str, md5: str, *, public: bool | None, shards: bool, reports: Reports
) -> Face:
    """Register ``URL/SUBSET.tar.gz`` as the next version of dataset ``name``.

    ``data/NAME.tar.gz.dvc`` keeps address and MD5; the archive itself is neither pushed nor kept.

    Args:
        root: Folder that holds ``.dvc``.
        name: Name of the dataset.
        url: Address of the archive; ``http://``, ``https://``, ``s3://`` or a path.
        md5: Its MD5, 32 hexadecimal digits.
        public: See :func:`voxveil.datasets.adding.add_dataset`.
        shards: As there.
        reports: As there.

    Raises:
        InputError: A wrong address or MD5; what was imported is removed again.
        DataError: DVC cannot get it.
    """
    dataset = ready(root, name)
    found = _ARCHIVE.match(Path(urlsplit(url).path).name)
    if not found:
        raise InputError(f"--url {url}: must name SUBSET.tar.gz")
    if not _MD5.match(md5.lower()):
        raise InputError(f"--md5 {md5!r}: must be 32 hexadecimal digits")
    archive = dataset.root / FOLDER / f"{name}.tar.gz"
    pointer = archive.with_name(f"{archive.name}.dvc")
    before = pointer.read_bytes() if pointer.is_file() else None
    archive.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(root):
        try:
            try:
                dvc(root, "import-url", "--force", url, f"{FOLDER}/{archive.name}")
            except DataError as error:
                raise DataError(f"{url}: cannot be fetched ({error})") from None
            got = tracked_md5(pointer)
            if got != md5.lower():
                raise InputError(f"{url}: MD5 is {got}, must be {md5.lower()}; nothing was registered")
            _never_push(pointer)
        except BaseException:
            pointer.unlink(missing_ok=True)
            if before is not None:
                pointer.write_bytes(before)
            archive.unlink(missing_ok=True)
            raise
    subset = found.group(1)
    with tempfile.TemporaryDirectory(prefix="voxveil-", dir=root / ".dvc" / "tmp") as folder:
        corpus = Path(folder) / name
        (corpus / subset).mkdir(parents=True)
        extract_archive(archive, subset, corpus / subset, corpus)
        face = add_dataset(root, name, corpus, public=public, shards=shards, reports=reports)
        shutil.rmtree(corpus)
    archive.unlink()
    return face


def _never_push(pointer: Path) -> None:
    """Mark the archive as not to be pushed: it can be fetched from its URL."""
    content = yaml.safe_load(pointer.read_text(encoding="utf-8"))
    content["outs"][0]["push"] = False
    pointer.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
