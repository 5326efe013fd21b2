"""Viterbi decoding of phones from frame posteriors, through a loop of all phones.

Frame by frame the likeliest phone flickers, and every flicker would count as an insertion. A phone
loop in which a phone lasts d frames on average (it goes on with probability 1 - 1/d, and any other
follows with equal probability) decides over the whole utterance instead; it knows no language.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.corpus.phones import SILENCE
from voxveil.runtime.errors import InputError

__all__ = ["PHONE_FRAMES", "best_path", "decode_phones"]

#: Mean length d of a phone in 10 ms frames, a constant for everybody.
PHONE_FRAMES = 8.0


def decode_phones(log_posteriors: NDArray[Any], phones: Sequence[str]) -> list[str]:
    """Return the phones of the best path, runs collapsed to one, silence dropped.

    Args:
        log_posteriors: (K, P) natural logarithms.
        phones: The P labels.
    """
    if log_posteriors.ndim != 2 or log_posteriors.shape[1] != len(phones):
        raise InputError(f"posteriors of shape {log_posteriors.shape} for {len(phones)} phones")
    penalty = math.log((PHONE_FRAMES - 1.0) * max(1, len(phones) - 1))
    path = best_path(log_posteriors, penalty)
    first = np.concatenate([[True], path[1:] != path[:-1]]) if len(path) else np.zeros(0, bool)
    return [phones[i] for i in path[first] if phones[i] != SILENCE]


def best_path(scores: NDArray[Any], penalty: float) -> NDArray[np.int64]:
    """Return the labels whose summed scores, less ``penalty`` per change of label, are largest.

    Args:
        scores: (K, P) per frame and label.
        penalty: Cost of a change, at least 0; with 0 every frame decides for itself.

    Returns:
        (K,) label indices.
    """
    frames, labels = scores.shape
    path = np.zeros(frames, np.int64)
    if not frames:
        return path
    total = scores[0].astype(np.float64)
    came_from = np.empty((frames, labels), np.int64)
    for frame in range(1, frames):
        best = int(total.argmax())
        stays = total >= total[best] - penalty
        came_from[frame] = np.where(stays, np.arange(labels), best)
        total = np.where(stays, total, total[best] - penalty) + scores[frame]
    path[-1] = int(total.argmax())
    for frame in range(frames - 1, 0, -1):
        path[frame - 1] = came_from[frame, path[frame]]
    return path
