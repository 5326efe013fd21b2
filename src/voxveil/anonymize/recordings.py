"""Recordings to anonymize, sorted into finished, refused and remaining ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from voxveil.anonymize.bundle import Bundle
from voxveil.anonymize.inputs import (
    Listed,
    Refused,
    list_data_folder,
    list_file,
    list_folder,
    no_file,
    refuse_collisions,
)
from voxveil.anonymize.output_names import RandomNames, private_folder, were_random
from voxveil.audio.files import decode, expected_samples, read_recording
from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.audio.streamed import announced_seconds, survey
from voxveil.privacy.ledger import Entry, Release, read_ledgers
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError
from voxveil.runtime.filenames import NOT_UTF8, printable, utf8_name

__all__ = [
    "DATA_FOLDER",
    "LONG_SAMPLES",
    "Job",
    "Refused",
    "Work",
    "bundle_folder",
    "find_work",
    "padded_samples",
]

#: Setting ``layout`` of a release from a Kaldi data folder.
DATA_FOLDER = "data-folder"
#: Longer recordings, in seconds and in samples at 16 kHz, are read a block at a time.
_LONG = 120.0
LONG_SAMPLES = round(_LONG * SAMPLE_RATE)


@dataclass(frozen=True, kw_only=True)
class Job(Listed):
    """A recording that is to be anonymized; its output is 16 kHz mono.

    Attributes:
        recorded: Its sample count at 16 kHz.
        samples: Sample count of what is released: as recorded, or more where lengths are padded. A system
            of words that does not keep lengths releases another.
        sha256: Of the file.
        flags: What reading it did or saw (:mod:`voxveil.audio.files`).
        damage: What is wrong with the output of an earlier run, which is drawn again; empty without.
    """

    recorded: int
    samples: int
    sha256: str
    flags: tuple[str, ...]
    damage: str = ""


@dataclass(frozen=True)
class Work:
    """Recordings of one call, sorted, with the settings of their release.

    Attributes:
        folder: Where outputs go.
        records: Where ledgers go: there too, unless outputs have random names or the system speaks words.
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
    *,
    file_format: str = "flac",
    plain: bool = False,
    beside: Sequence[str] = (),
) -> Work:
    """List the recordings of a file or folder and read each once.

    Args:
        source: A recording, a folder that is searched with its subfolders, or a Kaldi data folder
            (``wav.scp``, ``utt2spk``), VoicePrivacy's layout.
        destination: A folder; for one recording also the name of the output.
        bundle: The model: an output made by another one is not "already done".
        loudness: Of every output in LUFS; neither is an output of another loudness.
        pad_to: Seconds; every recording is released with silence up to a multiple of it. 0 = as long
            as it is.
        names: Random names for the outputs, flat in the folder; by default they keep their own.
        file_format: Of outputs, ``flac`` or ``wav``.
        plain: Search a folder even if it holds ``wav.scp``.
        beside: Suffixes of further files of every output.

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
    if file_format != "flac":
        settings["format"] = file_format
    suffix = f".{file_format}"
    if source.is_dir():
        folder = destination
        if (source / "wav.scp").is_file() and not plain:
            settings["layout"] = DATA_FOLDER
            found = list_data_folder(source, folder, suffix)
        else:
            found = list_folder(source, folder, suffix)
    elif source.is_file():
        folder, found = list_file(source, destination, suffix)
        if names is not None and folder != destination:
            raise InputError(f"{destination}: is the name of a file; --names random needs a folder")
        for recording in found.recordings:
            if _name_of(Path(recording.output.name)) != _made_of(recording.name, settings):
                settings["output"] = _name_of(Path(recording.output.name))
    elif os.path.lexists(source):
        raise InputError(f"{printable(source)}: {no_file(source)}")
    else:
        raise InputError(f"{printable(source)}: no such file or folder")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: must be a folder (or, for one recording, a name ending in {suffix})")
    single = source.is_file() and folder != destination
    records = folder
    if bundle.words is not None:
        # A ledger names digests of the recordings, and OUT must be a function of the words alone.
        records = destination.with_suffix(".private") if single else private_folder(folder)
        settings["words"] = bundle.words.digest
    if names is not None:
        records, settings["names"] = names.folder, "random"
        if file_format != "flac" or "layout" in settings:
            raise InputError(
                "--names random: outputs must be FLAC, and IN no Kaldi data folder, whose tables hold names"
            )
        # In the order of their new names: when an output was written tells nothing of the old one.
        renamed = [replace(listed, output=folder / names.of(listed.name)) for listed in found.recordings]
        found.recordings = sorted(renamed, key=lambda listed: listed.output)
    elif were_random(folder):
        raise InputError(f"{folder}: its outputs have random names; go on with --names random, or elsewhere")
    refuse_collisions(found.recordings)
    history = _history(records, bundle.system, names)
    jobs: list[Job] = []
    kept: list[str] = []
    for recording in found.recordings:
        exists = os.path.lexists(recording.output)
        try:
            digest = file_sha256(recording.source)
            recorded, flags = _read(recording.source)
            samples = padded_samples(recorded, pad_to)
            job = Job(**vars(recording), recorded=recorded, samples=samples, sha256=digest, flags=flags)
            if exists:
                output = _name_of(job.output.relative_to(folder))
                _require_own(job, history.get((output, job.name, digest), []), bundle, settings)
        except OSError as error:
            if exists:
                raise
            found.refuse(recording.source, f"refused, cannot be read ({error.strerror or error})")
            continue
        except InputError as error:
            if exists:
                raise
            found.refused.append(Refused(recording.name, " ".join(str(error).split())))
            continue
        known = bundle.words is None or bundle.words.length is not None
        damage = _damage(job.output, job.samples if known else None, beside) if exists else ""
        if exists and not damage:
            kept.append(job.name)
        else:
            jobs.append(replace(job, damage=damage))
    return Work(folder, records, tuple(jobs), tuple(kept), tuple(found.refused), found.others, settings)


def _read(path: Path) -> tuple[int, tuple[str, ...]]:
    """Return sample count at 16 kHz and flags of a recording."""
    if announced_seconds(path) > _LONG:
        streamed = survey(path)
        return streamed.samples, streamed.flags
    recording = read_recording(path)
    return expected_samples(recording.source_samples, recording.source_rate), recording.flags


def padded_samples(samples: int, pad_to: float) -> int:
    """Return the smallest multiple of ``pad_to`` seconds that holds ``samples``; 0 pads nothing."""
    step = max(1, round(pad_to * SAMPLE_RATE))
    return -(-samples // step) * step if pad_to else samples


def _name_of(path: Path) -> str:
    name = utf8_name(path)
    if name is None:
        raise InputError(f"{printable(path)}: {NOT_UTF8}")
    return name


def _made_of(name: str, settings: Mapping[str, str | float]) -> str:
    """Return where the output of an input lies in its folder, by the settings of its release."""
    suffix = f".{settings.get('format', 'flac')}"
    if settings.get("layout") == DATA_FOLDER:
        return f"wav/{name}{suffix}"
    return PurePosixPath(name).with_suffix(suffix).as_posix()


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
            output = str(release.settings.get("output", _made_of(entry.input, release.settings)))
            if names is not None:
                output = names.known.get(entry.input, "")
            before = history.get((output, entry.input, entry.sha256), [])
            same_time = [made for made in before if made[0].time == release.time]
            history[output, entry.input, entry.sha256] = [*same_time, (release, entry)]
    return history


def _require_own(
    job: Job, releases: Sequence[tuple[Release, Entry]], bundle: Bundle, settings: Mapping[str, str | float]
) -> None:
    """Raise an error if an existing output was not made by this model from this recording."""
    output = job.output
    if output.resolve() == job.source.resolve():
        raise InputError(f"{output}: is the recording itself; choose another output")
    if output.is_symlink() or not output.is_file():
        raise InputError(f"{output}: exists and is not a regular file; remove it or choose another folder")
    if not releases:
        raise InputError(
            f"{output}: exists, and no ledger beside it says that {bundle.system} made it from {job.source};"
            " remove it or choose another folder"
        )
    for release, entry in releases:
        differences = _differences(release, entry, bundle, settings, frame_count(job.samples))
        if differences:
            raise InputError(
                f"{output}: exists, made with {', '.join(differences)};"
                " neither kept nor overwritten: remove it or choose another folder"
            )


def _differences(
    release: Release, entry: Entry, bundle: Bundle, settings: Mapping[str, str | float], frames: int
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
        then_to, now_to = release.settings.get("pad_to", 0), settings.get("pad_to", 0)
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


def _damage(output: Path, samples: int | None, beside: Sequence[str]) -> str:
    """Return why an output is damaged or not whole; empty if it is as expected, and so is its length."""
    for suffix in beside:
        if not output.with_suffix(suffix).is_file():
            return f"without its {suffix[1:]}"
    try:
        if announced_seconds(output) > _LONG:
            found = survey(output).samples
        else:
            found = len(decode(output.read_bytes(), output.name))
    except InputError as error:
        return str(error)
    return "" if samples in (None, found) else f"{found} samples, not {samples}"
