"""Mean and standard deviation of log F0, with a default for unvoiced utterances.

An utterance with fewer than :data:`MINIMUM_VOICED` voiced frames takes its speaker's statistics
over all voiced frames. A speaker with fewer than that in all utterances together has no voice to
measure: it takes constants and is listed as having no voiced frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FALLBACK_MEAN", "FALLBACK_SD", "MINIMUM_VOICED", "PitchStatistics", "pitch_statistics"]

#: Voiced 10 ms frames below which statistics are not taken (0.1 s).
MINIMUM_VOICED = 10

#: Log of 155 Hz, between the common medians of male and female voices.
FALLBACK_MEAN = float(np.log(155.0))

#: In natural log: about 3 semitones.
FALLBACK_SD = 0.17


@dataclass(frozen=True)
class PitchStatistics:
    """Statistics per utterance.

    Attributes:
        mean: (U,) mean of ln F0, finite.
        sd: (U,) standard deviation of ln F0, finite.
        unvoiced: Sorted ids of speakers with no voiced frames (fewer than the minimum).
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    unvoiced: list[str]


def pitch_statistics(tracks: Sequence[NDArray[np.float32]], speakers: Sequence[str]) -> PitchStatistics:
    """Compute the statistics of F0 tracks.

    Args:
        tracks: One (K,) track in Hz per utterance, 0 where unvoiced.
        speakers: Speaker of each.
    """
    voiced = [np.log(track[track > 0].astype(np.float64)) for track in tracks]
    collected: dict[str, list[NDArray[np.float64]]] = {}
    for values, speaker in zip(voiced, speakers, strict=True):
        collected.setdefault(speaker, []).append(values)
    of_speaker: dict[str, tuple[float, float]] = {}
    unvoiced = []
    for speaker in sorted(collected):
        values = np.concatenate(collected[speaker])
        if len(values) < MINIMUM_VOICED:
            unvoiced.append(speaker)
            of_speaker[speaker] = (FALLBACK_MEAN, FALLBACK_SD)
        else:
            of_speaker[speaker] = (float(values.mean()), float(values.std()))
    pairs = [
        (float(values.mean()), float(values.std())) if len(values) >= MINIMUM_VOICED else of_speaker[speaker]
        for values, speaker in zip(voiced, speakers, strict=True)
    ]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return PitchStatistics(table[:, 0], table[:, 1], unvoiced)
