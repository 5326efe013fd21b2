"""The folder of an imported model: ``model.json``, its weights, and ``SHA256SUMS``.

``model.json`` names kind, architecture, licence, source and sample rate, and the SHA-256 of every file that
the model was converted from. Every reader checks all digests first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.checksums import SUMS, check_sums, write_sums
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError

__all__ = ["MODEL", "PretrainedModel", "read_model", "write_model"]

MODEL = "model.json"
_FORMAT = 1
#: Field that tells this format from the models that voxveil trains itself.
_MARK = "pretrained"


@dataclass(frozen=True)
class PretrainedModel:
    """A checked model folder.

    Attributes:
        folder: The folder.
        architecture: Name of the loader, a key of :data:`voxveil.pretrained.architectures.ARCHITECTURES`.
        kind: What the model does, e.g. ``speaker`` or ``recognizer``.
        licence: SPDX expression of the weights' licence, or the words of the person who imported them.
        source: Where the weights came from, with version or revision.
        sample_rate: Rate in Hz of the audio that the model takes.
        settings: What else its loader needs.
        origin: SHA-256 of each original file by name.
        digest: SHA-256 of ``SHA256SUMS``, which identifies the model.
    """

    folder: Path
    architecture: str
    kind: str
    licence: str
    source: str
    sample_rate: int
    settings: Mapping[str, Any]
    origin: Mapping[str, str]
    digest: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """Architecture and the first 12 digits of the digest, as tables name the model."""
        return f"{self.architecture} ({self.digest[:12]})"

    def facts(self) -> dict[str, str]:
        """Return what results and MLflow record of the model."""
        return {
            "architecture": self.architecture,
            "digest": self.digest,
            "licence": self.licence,
            "source": self.source,
        }


def write_model(folder: Path, model: PretrainedModel) -> None:
    """Write ``model.json`` and ``SHA256SUMS`` into a folder that holds the weights already."""
    content = {
        _MARK: _FORMAT,
        "architecture": model.architecture,
        "kind": model.kind,
        "licence": model.licence,
        "source": model.source,
        "sample_rate": model.sample_rate,
        "settings": dict(model.settings),
        "origin": dict(model.origin),
    }
    write_json(folder / MODEL, content)
    write_sums(folder)


def read_model(folder: Path, kind: str = "", parameter: str = "") -> PretrainedModel:
    """Check every file of a model folder and return its description.

    Args:
        folder: The folder.
        kind: The kind that the caller needs; empty accepts every kind.
        parameter: Dotted parameter or option that names the folder, for errors.

    Raises:
        IncompleteInputError: A file is missing, changed or not listed in ``SHA256SUMS``.
        InputError: The folder is no imported model, or one of another kind.
    """
    folder = Path(folder)
    prefix = f"{parameter}: " if parameter else ""
    if not folder.is_dir():
        raise InputError(f"{prefix}{folder}: no such folder; 'voxveil model import' writes one")
    check_sums(folder, MODEL, "pretrained model", "'voxveil model import' writes one")
    path = folder / MODEL
    content = read_json(path)
    if not isinstance(content, dict) or content.get(_MARK) != _FORMAT:
        raise InputError(f"{prefix}{path}: must be an imported model of format {_FORMAT}")
    try:
        model = PretrainedModel(
            folder=folder,
            architecture=str(content["architecture"]),
            kind=str(content["kind"]),
            licence=str(content["licence"]),
            source=str(content["source"]),
            sample_rate=int(content["sample_rate"]),
            settings=dict(content["settings"]),
            origin=dict(content["origin"]),
            digest=file_sha256(folder / SUMS),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a valid description ({type(error).__name__}: {error})") from None
    if kind and model.kind != kind:
        raise InputError(f"{prefix}{folder}: is a model of kind {model.kind}, must be of kind {kind}")
    return model
