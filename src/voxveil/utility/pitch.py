"""Pitch correlation: Pearson correlation of the F0 before and after anonymization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.metrics.intervals import draw_speakers, interval
from voxveil.runtime.errors import InputError

__all__ = ["LEAST_FRAMES", "evenly", "mean_correlation", "pitch_correlation"]

#: Frames that must be voiced on both sides for a correlation to be defined.
LEAST_FRAMES = 10


def pitch_correlation(original: NDArray[Any], released: NDArray[Any]) -> float | None:
    """Return the Pearson correlation of two F0 tracks over frames that are voiced in both.

    The pitch correlation of the VoicePrivacy Challenge 2022, without its search for a lag: released
    speech has the frames of the original. Where it does not, because words were spoken again in a length of
    their own, no frame belongs to another.

    Args:
        original: (K,) Hz, 0 where unvoiced.
        released: (K,) likewise.

    Returns:
        In [-1, 1]; None where the lengths differ, fewer than ``LEAST_FRAMES`` frames are voiced in both, or
        one is constant.
    """
    if original.ndim != 1 or released.ndim != 1:
        raise InputError(f"F0 must be (frames,), got {original.shape} and {released.shape}")
    if len(original) != len(released):
        return None
    both = (original > 0) & (released > 0)
    if np.count_nonzero(both) < LEAST_FRAMES:
        return None
    a, b = (np.asarray(track, np.float64)[both] for track in (original, released))
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else None


def mean_correlation(
    values: Sequence[float | None], speakers: Sequence[str], generator: np.random.Generator, replicates: int
) -> dict[str, Any]:
    """Return the mean over utterances where it is defined, with its interval over speakers.

    Args:
        values: Of each utterance; None where undefined.
        speakers: Of each utterance.
        generator: Draws the speakers.
        replicates: How many draws.

    Returns:
        ``value`` and ``ci95`` (None where no utterance has one), ``utterances``, ``speakers``, ``undefined``.
    """
    rows = [(s, v) for s, v in zip(speakers, values, strict=True) if v is not None]
    names = sorted({speaker for speaker, _ in rows})
    undefined = len(values) - len(rows)
    if not rows:
        return {"value": None, "ci95": None, "utterances": 0, "speakers": 0, "undefined": undefined}
    sums = np.array([[sum(v for s, v in rows if s == n), sum(s == n for s, _ in rows)] for n in names])
    totals = draw_speakers(generator, len(names), replicates) @ sums
    found = interval(totals[:, 0] / totals[:, 1])
    value, count = sums.sum(axis=0)
    return {
        "value": float(value / count),
        "ci95": None if found.bounds is None else list(found.bounds),
        "utterances": int(count),
        "speakers": len(names),
        "undefined": undefined,
    }


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most ``most`` items spread evenly over all, in their order."""
    count = min(most, len(items))
    return [items[index * len(items) // count] for index in range(count)]
