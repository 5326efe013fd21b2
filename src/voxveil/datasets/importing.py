"""Import of a LibriSpeech subset by URL: ``dvc import-url`` records the source, MD5 verifies the content."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from voxveil.corpus.download import extract_archive
from voxveil.datasets.adding import Reports, add_dataset, ready
from voxveil.datasets.face import Face
from voxveil.datasets.place import FOLDER, one_at_a_time
from voxveil.runtime.dvc_program import dvc, tracked_md5
from voxveil.runtime.errors import DataError, InputError

__all__ = ["import_dataset"]

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
