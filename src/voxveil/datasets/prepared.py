"""Earlier prepared corpora: outputs named in any past ``dvc.lock`` and still in DVC's cache.

An MLflow run made before a dataset was registered, or of a corpus that never was, names nothing but the
digest of its prepared speech; after the next ``dvc repro`` only the cache knows whose speech that was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from voxveil.datasets.git import file_at, git
from voxveil.runtime.dvc_program import dvc
from voxveil.runtime.errors import DataError

__all__ = ["past_revisions"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STAGE = "prepare"


def past_revisions(root: Path, speaker: str) -> set[str]:
    """Return the digests of prepared corpora in history that hold the speaker, on either side.

    What the cache no longer holds cannot be searched and gives nothing.

    Raises:
        DataError: Git or DVC refuses.
    """
    locks = _locks(root)
    if not locks:
        return set()
    cache = Path(dvc(root, "cache", "dir").strip())
    sides_of = {md5: _side(cache, md5, speaker) for md5 in {md5 for outputs in locks for md5 in outputs}}
    found: set[str] = set()
    for outputs in locks:
        sides = [sides_of[md5] for md5 in outputs]
        if any(holds_speaker for _, holds_speaker in sides):
            found |= {revision for revision, _ in sides if revision}
    return found


def _locks(root: Path) -> list[tuple[str, ...]]:
    """Return the digests of the prepared folders of each ``dvc.lock`` in any branch, tag or experiment."""
    found: dict[tuple[str, ...], None] = {}
    for commit in git(
        root, "log", "--all", "HEAD", "--full-history", "--format=%H", "--", "dvc.lock"
    ).split():
        try:
            content: Any = yaml.load(file_at(root, commit, "dvc.lock"), Loader=_LOADER)  # noqa: S506
            outputs = content["stages"][_STAGE]["outs"]
            found[tuple(str(output["md5"]) for output in outputs)] = None
        except (DataError, yaml.YAMLError, KeyError, TypeError):
            # Removed in that commit, left with the marks of a merge, or of another pipeline.
            continue
    return list(found)


def _side(cache: Path, md5: str, speaker: str) -> tuple[str, bool]:
    """Return the digest of one prepared folder and whether it holds the speaker."""
    revision, holds_speaker = "", False
    for name, content in _files(cache, md5):
        if name == "corpus.json":
            revision = str(content[0].get("revision", "")) if content else ""
        elif name.rpartition("/")[2] == "manifest.jsonl":
            holds_speaker = holds_speaker or any(row.get("speaker") == speaker for row in content)
    return revision, holds_speaker


def _files(cache: Path, md5: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the facts and manifests of a folder: name and the JSON objects in it."""
    for entry in _objects(cache, md5):
        name = str(entry.get("relpath", ""))
        if name == "corpus.json" or name.endswith("manifest.jsonl"):
            yield name, _objects(cache, str(entry.get("md5", "")), lines=name.endswith("jsonl"))


def _objects(cache: Path, md5: str, *, lines: bool = False) -> list[dict[str, Any]]:
    try:
        text = (cache / "files/md5" / md5[:2] / md5[2:]).read_text(encoding="utf-8")
        content = [json.loads(line) for line in text.split("\n") if line] if lines else json.loads(text)
    except (OSError, ValueError):
        return []
    return [item for item in (content if isinstance(content, list) else [content]) if isinstance(item, dict)]
