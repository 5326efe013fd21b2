"""A folder of recordings to anonymize: what is in it, what is already done, what cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voxveil.audio.io import expected_samples, read_recording
from voxveil.errors import InputError
from voxveil.privacy.ledger import read_ledgers
from voxveil.storage.done import file_sha256

__all__ = ["SUFFIXES", "Job", "Refused", "Work", "bundle_folder", "find_work"]

#: What counts as a recording in a folder.
SUFFIXES = (".flac", ".wav", ".ogg", ".opus", ".mp3", ".aiff", ".aif")


@dataclass(frozen=True)
class Job:
    """One recording.

    Attributes:
        name: Path below the input folder, as the ledger names it.
        source: Where it is.
        output: Where its anonymized speech goes (16 kHz mono FLAC).
        samples: Its sample count at 16 kHz.
        sha256: Of the file.
        flags: What reading it did or saw (:mod:`voxveil.audio.io`).
    """

    name: str
    source: Path
    output: Path
    samples: int
    sha256: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A recording that cannot be used, and why, in one line."""

    name: str
    reason: str


@dataclass(frozen=True)
class Work:
    """What there is to do.

    Attributes:
        folder: Where outputs and ledger go.
        jobs: Recordings to anonymize.
        kept: Names whose output an earlier run finished.
        refused: Recordings that cannot be used.
    """

    folder: Path
    jobs: tuple[Job, ...]
    kept: tuple[str, ...]
    refused: tuple[Refused, ...]


def bundle_folder(model: Path, system: str | None) -> Path:
    """Return the bundle that ``--model`` and ``--system`` name.

    Raises:
        InputError: There is none; the systems that are there are listed.
    """
    if system is None and (model / "bundle.json").is_file():
        return model
    known = sorted(path.parent.name for path in model.glob("*/bundle.json"))
    if system is None:
        raise InputError(
            f"--model {model}: not a model bundle"
            + (f"; it holds {', '.join(known)}: choose one by --system" if known else "")
        )
    if system not in known:
        raise InputError(f"--system {system}: not in {model}; it holds {', '.join(known) or 'no bundle'}")
    return model / system


def find_work(source: Path, destination: Path, system: str) -> Work:
    """List the recordings of a file or folder and read each once.

    Args:
        source: A recording, or a folder that is searched with its subfolders.
        destination: A folder; for one recording also a name ending in ``.flac``.
        system: Name of the system: an output made by another one is not "already done".

    Raises:
        InputError: No recordings, two with one output, or an output in the way that this system did
            not make from this recording.
    """
    source, destination = Path(source), Path(destination)
    if source.is_dir():
        folder = destination
        pairs = _pairs_of_folder(source, folder)
    elif source.is_file():
        single = destination.suffix.lower() == ".flac" and not destination.is_dir()
        folder = destination.parent if single else destination
        pairs = [(source.name, source, destination if single else folder / f"{source.stem}.flac")]
    else:
        raise InputError(f"{source}: no such file or folder")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: must be a folder (or, for one recording, a name ending in .flac)")
    _refuse_collisions(pairs)
    finished = _finished(folder, system)
    jobs: list[Job] = []
    kept: list[str] = []
    refused: list[Refused] = []
    for name, path, output in pairs:
        try:
            digest = file_sha256(path)
            if output.exists():
                _require_own(output, path, (name, digest) in finished, system)
                kept.append(name)
                continue
            recording = read_recording(path)
        except (InputError, OSError) as error:
            if output.exists():
                raise
            refused.append(Refused(name, " ".join(str(error).split())))
            continue
        samples = expected_samples(recording.source_samples, recording.source_rate)
        jobs.append(Job(name, path, output, samples, digest, recording.flags))
    return Work(folder, tuple(jobs), tuple(kept), tuple(refused))


def _pairs_of_folder(source: Path, folder: Path) -> list[tuple[str, Path, Path]]:
    inside = folder.resolve()
    if inside == source.resolve():
        raise InputError(f"{folder}: output and input are the same folder")
    paths = [
        path
        for path in sorted(source.rglob("*"))
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.resolve().is_relative_to(inside)
    ]
    if not paths:
        raise InputError(f"{source}: no recordings in it (looked for {' '.join(SUFFIXES)})")
    names = [path.relative_to(source).as_posix() for path in paths]
    return [
        (name, path, (folder / name).with_suffix(".flac")) for name, path in zip(names, paths, strict=True)
    ]


def _refuse_collisions(pairs: Sequence[tuple[str, Path, Path]]) -> None:
    seen: dict[Path, str] = {}
    for name, _, output in pairs:
        if output in seen:
            raise InputError(f"{seen[output]} and {name} would both become {output}; rename one")
        seen[output] = name


def _finished(folder: Path, system: str) -> set[tuple[str, str]]:
    """Return (name, SHA-256) of every input this system released into ``folder`` before."""
    if not any(folder.glob("ledger*.json")):
        return set()
    return {
        (entry.input, entry.sha256)
        for release in read_ledgers(folder)
        if release.system == system
        for entry in release.entries
    }


def _require_own(output: Path, source: Path, own: bool, system: str) -> None:
    if output.resolve() == source.resolve():
        raise InputError(f"{output}: is the recording itself; choose another output")
    if not own:
        raise InputError(
            f"{output}: exists, and no ledger beside it says that {system} made it from {source};"
            " remove it or choose another folder"
        )
