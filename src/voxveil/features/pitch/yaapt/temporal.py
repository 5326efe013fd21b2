"""YAAPT's temporal part: F0 candidates from the normalized cross-correlation near the spectral F0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.features.pitch.yaapt.grid import F0_MAX, F0_MIN, FRAME, framed

__all__ = ["CANDIDATES", "temporal_candidates"]

#: Candidates of a frame.
CANDIDATES = 3
#: Least correlation of a peak, and the one at which the largest peak stands alone.
_PEAK, _CERTAIN = 0.3, 0.9
#: Lags a peak must surpass each side.
_REACH = 2
_BOOST = 0.2
#: At least a frame, and a fast length.
_FFT = 576
#: Frames computed at once.
_BLOCK = 256

Array = NDArray[np.float64]


def temporal_candidates(filtered: Array, spectral: Array, spread: float) -> tuple[Array, Array]:
    """Return F0 in Hz and merit (F, 3) of the correlation peaks of every frame; 0 where none.

    Args:
        filtered: (n,) band-passed signal.
        spectral: (F,) rough F0 in Hz.
        spread: Its spread in Hz.
    """
    longest, shortest = np.maximum(spectral - 2 * spread, F0_MIN), np.minimum(spectral + 2 * spread, F0_MAX)
    first = (SAMPLE_RATE / shortest).astype(np.int64) - _REACH
    last = (SAMPLE_RATE / longest).astype(np.int64) + _REACH
    frames = len(spectral)
    views = framed(filtered, frames, FRAME)
    means = _frame_means(views)
    pitch, merit = np.zeros((frames, CANDIDATES)), np.zeros((frames, CANDIDATES))
    for start in range(0, frames, _BLOCK):
        rows = slice(start, start + _BLOCK)
        centred = views[rows] - _subtracted(means, rows)
        correlation = _correlation(centred, first[rows], last[rows])
        pitch[rows], merit[rows] = _peaks(correlation, first[rows], last[rows])
    distance = np.abs(pitch - spectral[:, None])
    close = distance < 5.0 * spread
    return pitch, (1 + _BOOST) * merit * np.where(close, 1 - distance / (5.0 * spread), 0.0)


def _frame_means(views: Array) -> Array:
    """Return the mean (F,) that each frame loses.

    As in pYAAPT frames share their samples, and each one's mean is subtracted before the next is
    looked at: a linear recursion over the frames that overlap.
    """
    from scipy.signal import lfilter

    overlaps = [FRAME - lag * HOP for lag in range(-(-FRAME // HOP))]
    sums = views.sum(axis=1)
    return np.asarray(lfilter([1 / FRAME], [1.0, *(shared / FRAME for shared in overlaps[1:])], sums))


def _subtracted(means: Array, rows: slice) -> Array:
    """Return (frames, FRAME): what the samples of each frame have lost when the frame is looked at."""
    count = len(means[rows])
    lost = np.zeros((count, FRAME))
    for lag in range(-(-FRAME // HOP)):
        index = np.arange(rows.start, rows.start + count) - lag
        before = np.where(index >= 0, means[np.maximum(index, 0)], 0.0)
        lost[:, : FRAME - lag * HOP] += before[:, None]
    return lost


def _correlation(frames: Array, first: NDArray[np.int64], last: NDArray[np.int64]) -> Array:
    """Return (F, L) correlation at lags 0 to L - 1; 0 outside a frame's [first, last), NaN in silence."""
    from scipy.fft import irfft, rfft

    lags = int(last.max()) + _REACH
    width = FRAME - last
    inside = np.arange(FRAME) < width[:, None]
    heads = np.where(inside, frames, 0.0)
    # Circular, but the head's last sample meets the frame's last at the largest lag.
    product = np.conj(rfft(heads, _FFT, axis=1)) * rfft(frames, _FFT, axis=1)
    found = np.asarray(irfft(product, _FFT, axis=1))[:, :lags]
    energy = np.zeros((len(frames), FRAME + 1))
    np.cumsum(frames**2, axis=1, out=energy[:, 1:])
    ends = np.minimum(np.arange(lags) + width[:, None], FRAME)
    behind = np.take_along_axis(energy, ends, axis=1) - energy[:, :lags]
    head = np.take_along_axis(energy, width[:, None], axis=1)
    power = np.maximum(behind, 0.0) * head
    with np.errstate(invalid="ignore"):
        normal = np.where(power > 0, found, np.nan) / np.sqrt(np.where(power > 0, power, 1.0))
    asked = (np.arange(lags) >= first[:, None]) & (np.arange(lags) < last[:, None])
    return np.where(asked, normal, 0.0)


def _peaks(correlation: Array, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return F0 in Hz and correlation (F, 3) of the highest peaks; 0 where there are fewer."""
    lags = correlation.shape[1]
    height = np.zeros_like(correlation)
    inner = slice(_REACH, lags - _REACH)
    here = correlation[:, inner]
    is_peak = here > _PEAK
    for offset in (-1, 1):
        is_peak &= here > correlation[:, _REACH + offset : lags - _REACH + offset]
    lag = np.arange(_REACH, lags - _REACH)
    is_peak &= (lag >= first[:, None] + _REACH) & (lag <= last[:, None] - _REACH)
    highest = correlation.max(axis=1)
    # In the order of their lags: of equals the first counts.
    alone = (highest > _CERTAIN) & is_peak.any(axis=1)
    kept = is_peak & (here > correlation[:, : lags - 2 * _REACH]) & (here >= correlation[:, 2 * _REACH :])
    height[:, inner] = np.where(np.where(alone[:, None], is_peak, kept), here, 0.0)
    pitch, merit = np.zeros((len(height), CANDIDATES)), np.zeros((len(height), CANDIDATES))
    rows = np.arange(len(height))
    for rank in range(CANDIDATES):
        best = height.argmax(axis=1)
        value = height[rows, best]
        wanted = (value > 0) & ((rank == 0) | ~alone)
        # One lag too long, as in pYAAPT; undone at the end.
        pitch[:, rank] = np.where(wanted, SAMPLE_RATE / (best + 1.0), 0.0)
        merit[:, rank] = np.where(wanted, value, 0.0)
        height[rows, best] = 0.0
    return pitch, merit / np.maximum(merit.max(axis=1, keepdims=True), 1.0)
