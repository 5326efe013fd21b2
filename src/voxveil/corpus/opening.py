"""Find out what kind of corpus a source is, and choose its public and private clips."""

from __future__ import annotations

from pathlib import Path

from voxveil.config.fields import listed
from voxveil.config.model import PrepareParams
from voxveil.corpus.embedded import PRIVATE_SUBSET, PUBLIC_SUBSET, EmbeddedSource
from voxveil.corpus.source import Clip, Source
from voxveil.errors import InputError
from voxveil.storage.atomic import read_json

__all__ = ["EMBEDDED", "clips_of", "open_folder", "open_source", "subsets"]

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
    _require_secrecy(folder, params.public)
    return open_folder(folder)


def _require_tracked(folder: Path) -> None:
    """Refuse a relative source that DVC does not track: nobody could tell which version it is."""
    if not any(Path(f"{each}.dvc").is_file() for each in (folder, *folder.parents) if each.name):
        raise InputError(
            f"prepare.source: {folder} is relative and DVC does not track it; give an absolute path,"
            f" or 'dvc add {folder}'"
        )


def _require_secrecy(folder: Path, public: bool) -> None:
    """Refuse to publish what was registered as private ('voxveil data add --private')."""
    summary = folder.with_name(f"{folder.name}.json")
    if public and folder.with_name(f"{folder.name}.manifest.tsv").is_file() and summary.is_file():
        content = read_json(summary)
        if isinstance(content, dict) and content.get("public") is False:
            raise InputError(f"prepare.public: must be false, dataset {folder} is private ({summary})")


def open_folder(folder: Path) -> Source:
    """Open a corpus folder: LibriSpeech or LibriTTS (SPEAKERS.TXT), or Kaldi tables (wav.scp)."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
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
