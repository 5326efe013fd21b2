"""YAAPT's last steps: ranking of all candidates, and the best path through them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.features.pitch.yaapt.path import cheapest_path, running_median

__all__ = ["final_pitch", "ranked"]

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
