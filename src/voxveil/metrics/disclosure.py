r"""Similarity-rank disclosure: information in the rank of the true speaker, in bit.

With :math:`\gamma_k` the probability of rank k among N references (1/N each when nothing leaks):

* disclosure of rank k: :math:`\log_2 N + \log_2 \gamma_k` bit; its mean and its maximum over k
  (at most log2 N);
* identification rate :math:`\gamma_1`;
* rank spread: share of ranks with :math:`\gamma_k > 1/N`, strictly;
* :math:`\mathrm{LLR}(k) = \log\frac{\gamma_k (N-1)}{1-\gamma_k}` nat, and the largest of it, of both
  signs or upwards only.

Everything takes probabilities of shape ``(..., N)`` and works along the last axis, so that a
thousand bootstrap replicates cost one call.

The identification rate and disclosure of every single speaker come as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voxveil.metrics.data import FloatArray, RankSet
from voxveil.metrics.ranks import rank_inputs, speaker_histograms

__all__ = [
    "SpeakerRow",
    "disclosure_bits",
    "format_speakers",
    "independent_bits",
    "max_disclosure",
    "mean_disclosure",
    "rank_llr",
    "rank_spread",
    "speaker_table",
]


def disclosure_bits(gamma: FloatArray) -> FloatArray:
    """Return log2(N gamma_k) in bit; -inf where a rank has probability 0."""
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log2(gamma * gamma.shape[-1])
    # Chance itself: log2 of a rounded N * (1/N) must not read as a disclosure.
    result[np.abs(result) < 1e-14] = 0.0
    return result


def mean_disclosure(gamma: FloatArray) -> FloatArray:
    """Return the mean disclosure in bit, in [0, log2 N], shape ``(...)``."""
    bits = np.where(gamma > 0, disclosure_bits(gamma), 0.0)
    result: FloatArray = np.maximum((gamma * bits).sum(-1), 0.0)
    return result


def independent_bits(bits: Sequence[float], n_references: int) -> float:
    """Return the joint disclosure of representations under independence, in bit.

    Args:
        bits: Mean disclosure of each.
        n_references: N; together they disclose log2 N at most.
    """
    return float(min(sum(bits), np.log2(n_references)))


def max_disclosure(gamma: FloatArray) -> FloatArray:
    """Return the largest disclosure in bit, in [0, log2 N], shape ``(...)``."""
    result: FloatArray = disclosure_bits(gamma).max(-1)
    return result


def rank_spread(gamma: FloatArray) -> FloatArray:
    """Return the share of ranks strictly above chance, in [0, 1), shape ``(...)``."""
    n = gamma.shape[-1]
    # A rank hit exactly n_inputs / N times does not count; spread ties carry rounding of 1e-13.
    result: FloatArray = np.mean(gamma * n > 1 + 1e-9, axis=-1)
    return result


def rank_llr(gamma: FloatArray) -> FloatArray:
    """Return LLR(k) in nat, infinite at probabilities 0 and 1, same shape as ``gamma``."""
    n = gamma.shape[-1]
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(gamma) + np.log(n - 1) - np.log1p(-np.minimum(gamma, 1.0))
    result[np.abs(result) < 1e-14] = 0.0
    return result


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
