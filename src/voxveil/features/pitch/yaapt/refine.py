"""YAAPT's last steps: ranking of all candidates, and the best (Viterbi) path through them; running median."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cheapest_path", "final_pitch", "ranked", "running_median"]

#: Energy ratio at or below which a frame is unvoiced for certain.
_UNVOICED = 0.1
_PIVOT = 0.99
_MEDIAN = 7
#: Weights of the steps voiced to voiced, to or from unvoiced, and unvoiced to unvoiced; of local cost.
_STEP_VOICED, _STEP_CHANGE, _STEP_UNVOICED, _LOCAL = 0.15, 0.5, 0.1, 0.9

Array = NDArray[np.float64]


def ranked(
    pitch: Array, merit: Array, spectral: Array, energy: Array, voiced: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return F0 in Hz and merit (F, C) of each frame's candidates; F0 0 is unvoiced.

    Args:
        pitch: (F, C) temporal candidates of both signals, 0 = none.
        merit: (F, C) of theirs.
        spectral: (F,) rough F0.
        energy: (F,) low-frequency energy ratio.
        voiced: (F,) where it is high.
    """
    order = np.argsort(-merit, axis=1, kind="stable")
    pitch, merit = np.take_along_axis(pitch, order, axis=1), np.take_along_axis(merit, order, axis=1)
    best = running_median(pitch[:, 0], _MEDIAN) * voiced
    silent, audible = energy <= _UNVOICED, energy > _UNVOICED
    found, lost = audible & (pitch[:, 0] > 0), audible & (pitch[:, 0] <= 0)
    none = np.zeros(pitch.shape, dtype=bool)
    none[:, 1:-1] = (pitch[:, 1:-1] == 0) & found[:, None]
    pitch[silent], merit[silent] = 0.0, _PIVOT
    pitch[found, -1], merit[found, -1] = 0.0, 1.0 - merit[found, 0]
    merit[none] = 0.0
    level = np.minimum(1.0, energy / 2.0)
    pitch[lost, 0], merit[lost, 0] = spectral[lost], level[lost]
    pitch[lost, 1:], merit[lost, 1:] = 0.0, 1.0 - level[lost, None]
    pitch[:, -2] = best
    merit[:, -2] = np.where(best > 0, merit[:, 0], 1.0 - level)
    pitch[:, -3], merit[:, -3] = spectral, energy / 5.0
    return pitch, merit


def final_pitch(pitch: Array, merit: Array, energy: Array) -> Array:
    """Return F0 in Hz (F,), 0 where unvoiced: the cheapest path through :func:`ranked` candidates."""
    best = pitch[:, -2]
    mean = best[best > 0].mean() if (best > 0).any() else np.nan
    voiced = pitch > 0
    now, before = voiced[1:, :, None], voiced[:-1, None, :]
    moved = np.abs(pitch[1:, :, None] - pitch[:-1, None, :]) / mean
    change = 1.0 - np.minimum(1.0, np.abs(np.diff(energy)))[:, None, None]
    steps = np.ones((len(pitch), pitch.shape[1], pitch.shape[1]))
    steps[1:] = np.where(
        now & before,
        _STEP_VOICED * moved,
        np.where(now | before, _STEP_CHANGE * change, _STEP_UNVOICED),
    )
    path = cheapest_path(1.0 - merit, steps / _LOCAL)
    return np.asarray(pitch[np.arange(len(pitch)), path])


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
