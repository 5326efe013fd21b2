"""Viterbi path through F0 candidates, and running median."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cheapest_path", "running_median"]


def cheapest_path(local: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the candidate (F,) of every frame on the path of least cost; of equals the last.

    Args:
        local: (F, C) cost of each candidate.
        steps: (F, C, C) cost of coming to a frame's candidate j from the one before's candidate i at
            [frame, j, i]; frame 0 is not read.
    """
    frames, count = local.shape
    # Reversed once: argmin takes the first of equals, and the last is wanted.
    backwards = steps[:, :, ::-1]
    came_from = np.zeros((frames, count), dtype=np.int64)
    total = local[0]
    rows = np.arange(count)
    for frame in range(1, frames):
        arriving = total[::-1] + backwards[frame]
        best = arriving.argmin(axis=1)
        came_from[frame] = best
        total = arriving[rows, best] + local[frame]
    # At first stored as positions from the end.
    came_from = count - 1 - came_from
    path = np.zeros(frames, dtype=np.int64)
    if frames > 1:
        path[-1] = count - 1 - total[::-1].argmin()
    for frame in range(frames - 2, -1, -1):
        path[frame] = came_from[frame + 1, path[frame + 1]]
    return path


def running_median(track: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the median (F,) of the odd ``width`` values around each; zeros lie beyond the ends."""
    padded = np.pad(track, width // 2)
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1))
