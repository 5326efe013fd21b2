"""Which target voice each recording of ``voxveil anonymize`` gets."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.recordings import Job
from voxveil.audio.streamed import survey
from voxveil.features.speaker.targets import Source
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.anonymize.anonymizer import Anonymizer

__all__ = ["JobTargets", "require_known"]


def require_known(anonymizer: Anonymizer, jobs: Sequence[Job]) -> None:
    """Refuse before anything is announced what the rule of the target asks for and nobody told."""
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
                " folder with spk2gender tells; nothing was released"
            )


class JobTargets:
    """How the target of each recording is drawn: for itself, or once for all of a speaker's."""

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

    def source(self, job: Job, audio: NDArray[np.float32]) -> Source:
        """Return what the rule looks at."""
        if self._sources:
            return self._sources[job.speaker]
        return self._anonymizer.source_of(audio, job.sex, str(job.source))
