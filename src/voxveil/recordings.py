"""A folder of recordings to anonymize: what is in it, what is already done, what cannot be used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from voxveil.audio.containers import OTHER_AUDIO, SUFFIXES, not_read
from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.audio.io import decode, expected_samples, read_recording
from voxveil.bundle import SUMS, Bundle
from voxveil.errors import InputError
from voxveil.naming import RandomNames, were_random
from voxveil.privacy.ledger import Entry, Release, read_ledgers
from voxveil.storage.done import file_sha256
from voxveil.storage.names import NOT_UTF8, printable, utf8_name

__all__ = ["Job", "Refused", "Work", "bundle_folder", "find_work", "padded_samples"]


@dataclass(frozen=True)
class Job:
    """One recording.

    Attributes:
        name: Path below the input folder, as the ledger names it.
        source: Where it is.
        output: Where its anonymized speech goes (16 kHz mono FLAC).
        recorded: Its sample count at 16 kHz.
        samples: Sample count of what is released: as recorded, or more where lengths are padded.
        sha256: Of the file.
        flags: What reading it did or saw (:mod:`voxveil.audio.io`).
        damage: What is wrong with the output of an earlier run, which is drawn again; empty without.
    """

    name: str
    source: Path
    output: Path
    recorded: int
    samples: int
    sha256: str
    flags: tuple[str, ...]
    damage: str = ""


@dataclass(frozen=True)
class Refused:
    """A recording that cannot be used, and why, in one line."""

    name: str
    reason: str


@dataclass(frozen=True)
class Work:
    """What there is to do.

    Attributes:
        folder: Where outputs go.
        records: Where ledgers go: there too, unless outputs have random names.
        jobs: Recordings to anonymize.
        kept: Names whose output an earlier run finished.
        refused: Recordings that cannot be used.
        others: Number of files that are no recordings.
        settings: What makes the outputs what they are, for the ledger (:class:`Release`).
    """

    folder: Path
    records: Path
    jobs: tuple[Job, ...]
    kept: tuple[str, ...]
    refused: tuple[Refused, ...]
    others: int = 0
    settings: dict[str, str | float] = field(default_factory=dict)


@dataclass
class _Found:
    """Recordings as (name, source, output), what is refused unread, and how many other files there are."""

    pairs: list[tuple[str, Path, Path]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    others: int = 0

    def refuse(self, path: Path, reason: str) -> None:
        self.refused.append(Refused(printable(path), f"{printable(path)}: {reason}"))


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


def find_work(
    source: Path,
    destination: Path,
    bundle: Bundle,
    loudness: float,
    pad_to: float = 0.0,
    names: RandomNames | None = None,
) -> Work:
    """List the recordings of a file or folder and read each once.

    Args:
        source: A recording, or a folder that is searched with its subfolders.
        destination: A folder; for one recording also a name ending in ``.flac``.
        bundle: The model: an output made by another one is not "already done".
        loudness: Of every output in LUFS; neither is an output of another loudness.
        pad_to: Seconds; every recording is released with silence up to a multiple of it. 0 = as long
            as it is.
        names: Random names for the outputs, flat in the folder; by default they keep their own.

    Raises:
        InputError: No recordings, two with one output, or an output in the way that this model did
            not make from this recording.
    """
    source, destination = Path(source), Path(destination)
    settings: dict[str, str | float] = {
        "model": file_sha256(bundle.folder / SUMS),
        "loudness": float(loudness),
    }
    if pad_to:
        settings["pad_to"] = float(pad_to)
    if source.is_dir():
        folder = destination
        found = _list_folder(source, folder)
    elif source.is_file():
        folder, found = _list_file(source, destination)
        if names is not None and folder != destination:
            raise InputError(f"{destination}: a name of your own; --names random needs a folder")
        for name, _, output in found.pairs:
            if _name_of(Path(output.name)) != _made_of(name):
                settings["output"] = _name_of(Path(output.name))
    elif os.path.lexists(source):
        raise InputError(f"{printable(source)}: {_no_file(source)}")
    else:
        raise InputError(f"{printable(source)}: no such file or folder")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: must be a folder (or, for one recording, a name ending in .flac)")
    records = folder
    if names is not None:
        records, settings["names"] = names.folder, "random"
        # In the order of their new names: when an output was written tells nothing of the old one.
        found.pairs = [(name, path, folder / names.of(name)) for name, path, _ in found.pairs]
        found.pairs.sort(key=lambda pair: pair[2])
    elif were_random(folder):
        raise InputError(f"{folder}: its outputs have random names; go on with --names random, or elsewhere")
    _refuse_collisions(found.pairs)
    history = _history(records, bundle.system, names)
    jobs: list[Job] = []
    kept: list[str] = []
    for name, path, output in found.pairs:
        there = os.path.lexists(output)
        try:
            digest = file_sha256(path)
            recording = read_recording(path)
            recorded = expected_samples(recording.source_samples, recording.source_rate)
            samples = padded_samples(recorded, pad_to)
            if there:
                made = history.get((_name_of(output.relative_to(folder)), name, digest), [])
                _require_own(output, path, made, bundle, settings, frame_count(samples))
        except OSError as error:
            if there:
                raise
            found.refuse(path, f"refused, cannot be read ({error.strerror or error})")
            continue
        except InputError as error:
            if there:
                raise
            found.refused.append(Refused(name, " ".join(str(error).split())))
            continue
        damage = _damage(output, samples) if there else ""
        if there and not damage:
            kept.append(name)
        else:
            jobs.append(Job(name, path, output, recorded, samples, digest, recording.flags, damage))
    return Work(folder, records, tuple(jobs), tuple(kept), tuple(found.refused), found.others, settings)


def padded_samples(samples: int, pad_to: float) -> int:
    """Return the smallest multiple of ``pad_to`` seconds that holds ``samples``; 0 pads nothing."""
    step = max(1, round(pad_to * SAMPLE_RATE))
    return -(-samples // step) * step if pad_to else samples


def _name_of(path: Path) -> str:
    name = utf8_name(path)
    if name is None:
        raise InputError(f"{printable(path)}: {NOT_UTF8}")
    return name


def _made_of(name: str) -> str:
    return PurePosixPath(name).with_suffix(".flac").as_posix()


def _list_file(source: Path, destination: Path) -> tuple[Path, _Found]:
    suffix = destination.suffix.lower()
    if suffix in SUFFIXES + OTHER_AUDIO and suffix != ".flac" and not destination.is_dir():
        raise InputError(f"{destination}: outputs are FLAC; give a name ending in .flac, or a folder")
    single = suffix == ".flac" and not destination.is_dir()
    folder = destination.parent if single else destination
    found = _Found()
    name = utf8_name(Path(source.name))
    if name is None:
        found.refuse(source, NOT_UTF8)
    else:
        found.pairs.append((name, source, destination if single else folder / f"{source.stem}.flac"))
    return folder, found


def _list_folder(source: Path, folder: Path) -> _Found:
    inside, top = folder.resolve(), source.resolve()
    if inside == top:
        raise InputError(f"{folder}: output and input are the same folder")
    if top.is_relative_to(inside):
        raise InputError(f"{folder}: the output folder holds the input folder {source}; choose another one")
    found = _Found()

    def unreadable(error: OSError) -> None:
        found.refuse(Path(error.filename), f"refused, cannot be read ({error.strerror})")

    for root, folders, files in os.walk(source, onerror=unreadable):
        here = Path(root)
        for name in sorted(folders):
            if (here / name).is_symlink() and not (here / name).resolve().is_relative_to(inside):
                found.refuse(here / name, "refused, a link to a folder; give the folder itself as IN")
        # What lies in the output folder is not an input; a link to it is neither.
        folders[:] = sorted(
            name
            for name in folders
            if not (here / name).is_symlink() and not (here / name).resolve().is_relative_to(inside)
        )
        for name in sorted(files):
            _sort_file(here / name, source, folder, found)
    if not found.pairs and not found.refused:
        raise InputError(f"{printable(source)}: no recordings in it (looked for {' '.join(SUFFIXES)})")
    found.pairs.sort()
    return found


def _sort_file(path: Path, source: Path, folder: Path, found: _Found) -> None:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES + OTHER_AUDIO:
        found.others += 1
        return
    name = utf8_name(path.relative_to(source))
    if name is None:
        found.refuse(path, NOT_UTF8)
    elif not path.is_file():
        found.refuse(path, _no_file(path))
    elif suffix in OTHER_AUDIO:
        found.refuse(path, not_read(path))
    elif path.resolve().is_relative_to(folder.resolve()):
        found.refuse(path, "refused, a link into the output folder")
    else:
        found.pairs.append((name, path, (folder / path.relative_to(source)).with_suffix(".flac")))


def _no_file(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "refused, a link to a file that is not there"
    return "refused, not a regular file"


def _refuse_collisions(pairs: Sequence[tuple[str, Path, Path]]) -> None:
    seen: dict[Path, str] = {}
    for name, _, output in pairs:
        if output in seen:
            raise InputError(f"{seen[output]} and {name} would both become {output}; rename one")
        seen[output] = name


_History = dict[tuple[str, str, str], list[tuple[Release, Entry]]]


def _history(folder: Path, system: str, names: RandomNames | None) -> _History:
    """Return by (output, input, SHA-256) what this system announced last for ``folder``.

    Records of one second come together: which of them made the output cannot be told.
    """
    history: _History = {}
    if not any(folder.glob("ledger*.json")):
        return history
    for release in read_ledgers(folder):
        if release.system != system:
            continue
        for entry in release.entries:
            output = str(release.settings.get("output", _made_of(entry.input)))
            if names is not None:
                output = names.known.get(entry.input, "")
            before = history.get((output, entry.input, entry.sha256), [])
            same_time = [made for made in before if made[0].time == release.time]
            history[output, entry.input, entry.sha256] = [*same_time, (release, entry)]
    return history


def _require_own(
    output: Path,
    source: Path,
    made: Sequence[tuple[Release, Entry]],
    bundle: Bundle,
    settings: dict[str, str | float],
    frames: int,
) -> None:
    if output.resolve() == source.resolve():
        raise InputError(f"{output}: is the recording itself; choose another output")
    if output.is_symlink() or not output.is_file():
        raise InputError(f"{output}: exists and is not a regular file; remove it or choose another folder")
    if not made:
        raise InputError(
            f"{output}: exists, and no ledger beside it says that {bundle.system} made it from {source};"
            " remove it or choose another folder"
        )
    for release, entry in made:
        differences = _differences(release, entry, bundle, settings, frames)
        if differences:
            raise InputError(
                f"{output}: exists, made with {', '.join(differences)};"
                " neither kept nor overwritten: remove it or choose another folder"
            )


def _differences(
    release: Release, entry: Entry, bundle: Bundle, settings: dict[str, str | float], frames: int
) -> list[str]:
    differences = []
    now, vectors = bundle.rule.losses(frames), bundle.rule.vectors(frames)
    if entry.vectors != vectors:
        differences.append(f"{entry.vectors} vectors, now {vectors}")
    for stream in sorted(set(now) | set(entry.losses)):
        then_loss, now_loss = entry.losses.get(stream), now.get(stream)
        if then_loss != now_loss:
            then_text, now_text = (
                "no loss" if loss is None else f"{loss.amount} per {loss.unit} ({loss.mechanism})"
                for loss in (then_loss, now_loss)
            )
            differences.append(f"{stream} {then_text}, now {now_text}")
    if release.settings.get("pad_to") != settings.get("pad_to"):
        then_to, now_to = (each.get("pad_to", 0) for each in (release.settings, settings))
        differences.append(f"padding to {then_to:g} s, now {now_to:g} s")
    for key, unit in (("model", ""), ("loudness", " LUFS")):
        then, wanted = release.settings.get(key), settings[key]
        if then is None:
            differences.append(f"a {key} that its ledger does not name")
        elif then != wanted:
            differences.append(f"{key} {_short(then)}{unit}, now {_short(wanted)}{unit}")
    return differences


def _short(value: str | float) -> str:
    return value[:12] if isinstance(value, str) else f"{value:g}"


def _damage(output: Path, samples: int) -> str:
    """Say why an output cannot be what was written, or return an empty word."""
    try:
        there = len(decode(output.read_bytes(), output.name))
    except InputError as error:
        return str(error)
    return "" if there == samples else f"{there} samples, not {samples}"
