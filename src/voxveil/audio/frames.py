"""The frame grid: 16 kHz samples, one frame every 10 ms, centred at sample 160 k."""

from __future__ import annotations

__all__ = ["HOP", "MEL_BANDS", "SAMPLE_RATE", "frame_count"]

SAMPLE_RATE = 16_000
HOP = 160
MEL_BANDS = 80


def frame_count(samples: int) -> int:
    """Return the number of frames K of an utterance: every feature stream has exactly this many."""
    return samples // HOP + 1
