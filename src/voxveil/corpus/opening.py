"""Detection of a corpus's format, and selection of its public and private clips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voxveil.config.fields import listed
from voxveil.config.model import PrepareParams
from voxveil.corpus.embedded import PRIVATE_SUBSET, PUBLIC_SUBSET, EmbeddedSource
from voxveil.corpus.source import Clip, FileSource, Source, clip_file
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError

__all__ = ["EMBEDDED", "clips_of", "dataset_version", "open_folder", "open_source", "subsets"]

EMBEDDED = "embedded"


def open_source(params: PrepareParams, seed: int) -> Source:
    """Return the corpus that ``prepare.source`` names, aligned as ``prepare.alignment`` says."""
    source = _open_source(params, seed)
    if params.alignment == "pocketsphinx":
        from voxveil.corpus.alignment import AlignedSource

        return AlignedSource(source)
    return source


def _open_source(params: PrepareParams, seed: int) -> Source:
    if params.source == EMBEDDED:
        public = params.extractor_speakers + params.pool_speakers + params.attacker_speakers
        return EmbeddedSource(seed, public, params.private_speakers, params.utterances)
    folder = Path(params.source)
    if not folder.is_absolute():
        _require_tracked(folder)
    summary = _registered(folder)
    if summary is None:
        return open_folder(folder)
    _require_registration(params, folder, summary)
    source = open_folder(folder)
    _require_version(source, folder)
    return source


def dataset_version(params: PrepareParams) -> dict[str, str] | None:
    """Return the version of a registered dataset, None for any other source.

    Returns:
        ``manifest_sha256``, the dataset's hash, and ``dvc_md5``, the digest that DVC finds its data by.

    Raises:
        InputError: Summary and manifest are of different versions.
    """
    folder = Path(params.source)
    summary = None if params.source == EMBEDDED else _registered(folder)
    if summary is None:
        return None
    digest = file_sha256(_manifest(folder))
    if summary.get("manifest_sha256") != digest or not isinstance(summary.get("dvc_md5"), str):
        raise InputError(
            f"{folder}.json: is of another version than {_manifest(folder)};"
            f" 'voxveil data add {folder.name} {folder}' makes both"
        )
    return {"manifest_sha256": digest, "dvc_md5": summary["dvc_md5"]}


def _require_tracked(folder: Path) -> None:
    """Raise an error for a relative source that DVC does not track, as its version is unknown."""
    if not any(Path(f"{path}.dvc").is_file() for path in (folder, *folder.parents) if path.name):
        raise InputError(
            f"prepare.source: {folder} is relative and DVC does not track it; give an absolute path,"
            f" or 'dvc add {folder}'"
        )


def _manifest(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.manifest.tsv")


def _registered(folder: Path) -> dict[str, Any] | None:
    """Return the summary of a dataset that 'voxveil data add' registered; None for any other folder."""
    summary = folder.with_name(f"{folder.name}.json")
    if not _manifest(folder).is_file() or not summary.is_file():
        return None
    content = read_json(summary)
    return content if isinstance(content, dict) else None


def _require_registration(params: PrepareParams, folder: Path, summary: dict[str, Any]) -> None:
    """Raise an error if private data are declared public, or DVC would not detect a new version."""
    if params.public and summary.get("public") is False:
        raise InputError(f"prepare.public: must be false, dataset {folder} is private ({folder}.json)")
    if Path(params.manifest).absolute() != _manifest(folder).absolute():
        raise InputError(
            f"prepare.manifest: must be {_manifest(folder)}, else a new version of {folder} would go"
            f" unnoticed; got {params.manifest}"
        )


def _require_version(source: Source, folder: Path) -> None:
    """Raise an error if data differ from the manifest beside them; every file is hashed."""
    lines = _manifest(folder).read_text(encoding="utf-8").split("\n")[1:]
    wanted = {fields[0]: fields[-1] for fields in (line.split("\t") for line in lines) if fields[0]}
    advice = f"'dvc checkout {folder}.dvc', or 'voxveil data add {folder.name} {folder}' for a new version"
    for clip in source.clips:
        with clip_file(source, clip) as path:
            if not path.is_file() or file_sha256(path) != wanted.pop(clip.id, ""):
                raise InputError(f"{_manifest(folder)}: {clip.path} is of another version; {advice}")
    if wanted:
        raise InputError(f"{_manifest(folder)}: utterance {min(wanted)} is not in {folder}; {advice}")


def open_folder(folder: Path) -> FileSource:
    """Open a corpus folder: LibriSpeech or LibriTTS (SPEAKERS.TXT), or Kaldi tables (wav.scp)."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; it must hold a corpus")
    if (folder / "wav.scp").is_file():
        from voxveil.corpus.kaldi import read_kaldi

        return read_kaldi(folder)
    from voxveil.corpus.librispeech import find_speakers_table, read_librispeech

    if find_speakers_table(folder) is not None:
        return read_librispeech(folder)
    raise InputError(
        f"{folder}: not a corpus; it holds neither wav.scp (Kaldi) nor SPEAKERS.TXT (LibriSpeech, LibriTTS)"
    )


def subsets(params: PrepareParams) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the subsets that public and private speakers come from; empty means the whole corpus."""
    if params.source == EMBEDDED:
        return (PUBLIC_SUBSET,), (PRIVATE_SUBSET,)
    return listed(params.public_subsets), listed(params.private_subsets)


def clips_of(source: Source, names: tuple[str, ...], parameter: str) -> list[Clip]:
    """Return the clips of the named subsets; an unknown subset is an error."""
    if not names:
        return list(source.clips)
    known = sorted({clip.subset for clip in source.clips if clip.subset})
    for name in names:
        if name not in known:
            raise InputError(
                f"{parameter}: {source.name} has no subset {name!r}; it has: {', '.join(known) or 'none'}"
            )
    return [clip for clip in source.clips if clip.subset in names]
