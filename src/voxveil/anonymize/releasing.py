"""Release of the recordings of ``voxveil anonymize``: whole or in windows, with their target voices."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.bundle import Bundle
from voxveil.anonymize.recordings import LONG_SAMPLES, Job, Work
from voxveil.anonymize.subtitles import WRITERS
from voxveil.audio.files import encode_audio, read_recording
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.streamed import Spool, survey
from voxveil.config.fields import listed
from voxveil.features.speaker.targets import Source
from voxveil.privacy import Loss, Release
from voxveil.runtime.atomic import write_bytes, write_json, write_text
from voxveil.runtime.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from voxveil.anonymize.anonymizer import Anonymizer

__all__ = [
    "JobTargets",
    "files_beside",
    "release_whole",
    "release_windows",
    "require_known",
    "write_observations",
]

Array = NDArray[np.float32]


def require_known(anonymizer: Anonymizer, jobs: Sequence[Job]) -> None:
    """Raise an error if the target rule needs a speaker or a sex that a recording does not state."""
    rule = anonymizer.bundle.target
    anonymizer.require_disjoint(job.speaker for job in jobs if job.speaker)
    for job in jobs:
        if rule.level == "speaker" and not job.speaker:
            raise InputError(
                f"{job.name}: {anonymizer.bundle.system} has one target per speaker, and who speaks is known"
                " in a Kaldi data folder only (wav.scp, utt2spk); nothing was released"
            )
        if rule.sex != "any" and not job.sex:
            raise InputError(
                f"{job.name}: {anonymizer.bundle.system} chooses targets by sex, which only a Kaldi data"
                " folder with spk2gender states; nothing was released"
            )


class JobTargets:
    """Target voices of recordings: drawn for each one, or once for all recordings of a speaker."""

    def __init__(self, anonymizer: Anonymizer, jobs: Sequence[Job]) -> None:
        self._anonymizer = anonymizer
        self._seeds: dict[str, int] = {}
        self._sources: dict[str, Source] = {}
        if anonymizer.bundle.target.level == "speaker":
            for job in jobs:
                if job.speaker not in self._seeds:
                    self._seeds[job.speaker] = secrets.randbits(256)
                    audio = next(survey(job.source).blocks())
                    self._sources[job.speaker] = anonymizer.source_of(audio, job.sex, str(job.source))

    def rng(self, job: Job) -> np.random.Generator | None:
        """Return the generator of a speaker's target; None where every recording has its own."""
        return np.random.default_rng(self._seeds[job.speaker]) if self._seeds else None

    def source(self, job: Job, audio: Array) -> Source:
        """Return the input of the target rule for a recording."""
        if self._sources:
            return self._sources[job.speaker]
        return self._anonymizer.source_of(audio, job.sex, str(job.source))


def files_beside(bundle: Bundle, text: str) -> tuple[str, ...]:
    """Return the suffixes of the files with words and times that come with every output.

    Args:
        bundle: The system.
        text: Option ``--write``, names by commas.

    Raises:
        InputError: An unknown name, or a system without words.
    """
    wanted = listed(text)
    for name in wanted:
        if name not in WRITERS:
            raise InputError(f"--write: must be a list of {', '.join(WRITERS)}, got {name!r}")
    if bundle.words is None and wanted:
        raise InputError(f"--write: {bundle.system} recognizes no words")
    return tuple(f".{name}" for name in wanted)


def release_whole(
    anonymizer: Anonymizer,
    job: Job,
    release: Release,
    rng: np.random.Generator | None,
    source: Callable[[Array], Source],
    beside: Sequence[str] = (),
) -> int:
    """Anonymize one recording at once into its output files and return the number of clipped samples.

    Args:
        anonymizer: The loaded model.
        job: The recording.
        release: Where it was announced.
        rng: Chooses the target voice; see :meth:`Anonymizer.anonymize_private`.
        source: Maps the audio to the input of the target rule.
        beside: Suffixes of files with the words and their times.
    """
    words = anonymizer.bundle.words is not None
    if words and job.recorded > LONG_SAMPLES:
        # A system of words takes long recordings whole too; reading them a block at a time takes less memory.
        audio = np.concatenate(list(survey(job.source).blocks()))
    else:
        audio = read_recording(job.source).audio
    if len(audio) != job.recorded:
        raise InputError(f"{job.source}: changed while it was being read; nothing was released of it")
    if not words:
        # Before anything is extracted: the silence is released like speech, and charged like it.
        audio = np.pad(audio, (0, job.samples - job.recorded))
    try:
        anonymized = anonymizer.anonymize_private(
            audio, rng, name=str(job.source), source=source(audio), samples=job.samples
        )
    except PrivacyError as error:
        raise PrivacyError(f"{job.source}: {error}") from None
    release.require(job.name, anonymized.losses, anonymized.vectors)
    data, clipped = encode_audio(anonymized.audio, job.name, job.output.suffix[1:].upper())
    for suffix in beside:
        if anonymized.words is not None:
            write_text(job.output.with_suffix(suffix), WRITERS[suffix[1:]](anonymized.words))
    write_bytes(job.output, data)
    return clipped


def write_observations(work: Work, release: Release, factor: float) -> None:
    """Write what was seen of the recordings into the private folder; standard error has a count alone.

    Args:
        work: The recordings.
        release: What was released of them.
        factor: Real-time factor.
    """
    flagged = {job.name: list(job.flags) for job in work.jobs if job.flags}
    seconds = sum(job.samples for job in work.jobs) / SAMPLE_RATE
    path = work.records / f"recordings-{release.id}.json"
    content = {"format": 1, "flags": flagged, "seconds": seconds, "real_time_factor": factor}
    write_json(path, content, private=True)
    if flagged:
        print(f"voxveil: {len(flagged)} recordings have flags; {path} lists them", file=sys.stderr)


def release_windows(
    anonymizer: Anonymizer,
    job: Job,
    release: Release,
    report_samples: Callable[[int], None],
    rng: np.random.Generator | None = None,
    source: Callable[[Array], Source] | None = None,
) -> int:
    """Anonymize one long recording into its output file and return the number of clipped samples.

    Args:
        anonymizer: The loaded model.
        job: The recording.
        release: Where it was announced.
        report_samples: Receives the number of samples of each piece, for progress.
        rng: Chooses the target voice; see :meth:`Anonymizer.anonymize_private`.
        source: See :meth:`Anonymizer.anonymize_windows`.
    """
    recording = survey(job.source)
    if recording.samples != job.recorded:
        raise InputError(f"{job.source}: changed while it was being read; nothing was released of it")
    losses: dict[str, Loss] = {}
    with Spool.beside(job.output) as spool:
        try:
            pieces = anonymizer.anonymize_windows(
                recording.blocks(), job.samples, losses, str(job.source), rng=rng, source=source
            )
            for piece in pieces:
                spool.write(piece)
                report_samples(len(piece))
        except PrivacyError as error:
            raise PrivacyError(f"{job.source}: {error}") from None
        release.require(job.name, losses, anonymizer.vectors(job.samples))
        return spool.store(job.output, job.output.suffix[1:].upper(), anonymizer.loudness)
