"""Training speech of synthesis, and facts of its corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voxveil.corpus.split import Split
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError

__all__ = ["corpus_facts", "synthesis_split"]

#: Facts of ``corpus.json`` that travel with every model.
_FACTS = ("name", "synthetic", "public", "revision")


def synthesis_split(public: Path) -> Split:
    """Return the split that trains synthesis: ``synthesis`` where there is one, else ``extractor``."""
    folder = Path(public) / "synthesis"
    return Split(folder if folder.is_dir() else Path(public) / "extractor")


def corpus_facts(folder: Path) -> dict[str, Any]:
    """Return name, revision, whether the corpus is synthetic and public, and the dataset it comes from.

    Args:
        folder: One side of the prepare stage, holding ``corpus.json``.

    Raises:
        InputError: A fact is missing or of another kind.
    """
    path = Path(folder) / "corpus.json"
    content = read_json(path)
    for name in _FACTS:
        kind = bool if name in ("synthetic", "public") else str
        if not isinstance(content, dict) or not isinstance(content.get(name), kind):
            raise InputError(f"{path}: {name} must be {'true or false' if kind is bool else 'text'}")
    return {**{name: content[name] for name in _FACTS}, "dataset": content.get("dataset")}
