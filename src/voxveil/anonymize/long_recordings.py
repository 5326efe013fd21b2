"""A long recording of ``voxveil anonymize``: read, anonymized and written a piece at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.recordings import Job
from voxveil.audio.streamed import Spool, survey
from voxveil.privacy import Loss, Release
from voxveil.runtime.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from voxveil.anonymize.anonymizer import Anonymizer
    from voxveil.features.speaker.targets import Source

__all__ = ["release_windows"]

Array = NDArray[np.float32]


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
