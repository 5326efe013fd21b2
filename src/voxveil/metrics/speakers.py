"""Identification rate and disclosure of every single speaker, as a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voxveil.metrics.data import RankSet
from voxveil.metrics.disclosure import disclosure_bits
from voxveil.metrics.ranks import rank_inputs, speaker_histograms

__all__ = ["SpeakerRow", "format_speakers", "speaker_table"]


@dataclass(frozen=True)
class SpeakerRow:
    """Identification rate and disclosure of one speaker.

    Attributes:
        speaker: Name.
        n_inputs: Number of inputs.
        identification_rate: Inputs whose own reference ranks first, % (ties spread).
        disclosure: Mean over the speaker's inputs of log2(N gamma_k), bit, with gamma of all inputs; the
            mean over all inputs is ``rank_mean``.
        best_rank: Best rank (1 = identified) any input of the speaker reached.
    """

    speaker: str
    n_inputs: int
    identification_rate: float
    disclosure: float
    best_rank: int


def speaker_table(ranks: RankSet) -> list[SpeakerRow]:
    """Return one row per speaker with inputs, most exposed first."""
    ranked = rank_inputs(ranks)
    speakers, histograms = speaker_histograms(ranked)
    everyone = histograms.sum(0)
    bits = disclosure_bits(everyone / everyone.sum())
    rows = []
    for speaker, histogram in zip(speakers, histograms, strict=True):
        n_inputs = round(float(histogram.sum()))
        met = histogram > 0
        rows.append(
            SpeakerRow(
                ranks.speakers[speaker],
                n_inputs,
                100 * float(histogram[0]) / n_inputs,
                float(histogram[met] @ bits[met]) / n_inputs,
                1 + int(np.argmax(met)),
            )
        )
    return sorted(rows, key=lambda row: (-row.identification_rate, -row.disclosure, row.speaker))


def format_speakers(rows: list[SpeakerRow]) -> str:
    """Return the rows as tab-separated text with a header."""
    lines = ["speaker\tinputs\tidentification_rate_%\tdisclosure_bit\tbest_rank"]
    for row in rows:
        numbers = f"{row.n_inputs}\t{row.identification_rate:.6g}\t{row.disclosure:.6g}\t{row.best_rank}"
        lines.append(f"{row.speaker}\t{numbers}")
    return "\n".join(lines) + "\n"
