"""YAAPT's spectral part: voicing, and a rough F0 from the harmonics of the squared signal."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.features.pitch.yaapt.grid import F0_MAX, F0_MIN, FRAME, framed
from voxveil.features.pitch.yaapt.refine import cheapest_path, running_median

__all__ = ["energy_ratio", "spectral_pitch"]

_FFT = 8192
_BIN = SAMPLE_RATE / _FFT
#: Bins of the low-frequency energy: from 2 F0_MIN to F0_MAX.
_LOW = slice(round(2 * F0_MIN / _BIN) - 1, round(F0_MAX / _BIN))
_PEAKS = 4
_HARMONICS = 4
_WINDOW_HZ, _PEAK_HZ = 40.0, 50.0
_HALF = int(_WINDOW_HZ / _BIN) // 2
_WINDOW = 2 * _HALF + 1
#: Frequencies at which spectral harmonics correlation is computed, in bins.
_FIRST, _LAST = int(np.ceil(F0_MIN / _BIN)), int((F0_MAX + 2 * _PEAK_HZ) / _BIN)
_THRESHOLD_1, _THRESHOLD_2 = 5.0, 1.25
#: Half the distance two peaks keep, and where peaks are looked for, in bins.
_CENTRE = int(np.ceil(int(_PEAK_HZ / _BIN) / 2))
_FROM, _TO = int(F0_MIN / _BIN - _CENTRE), int(F0_MAX / _BIN + _CENTRE)
_MEDIAN = 5
_PATH_WEIGHT = 11.0
#: F0 in Hz where no frame tells, and the least spread relative to the mean.
_TYPICAL, _LEAST_SPREAD = 150.0, 0.05
#: Frames computed at once.
_BLOCK = 64

Array = NDArray[np.float64]


@lru_cache(maxsize=1)
def _low_basis() -> Array:
    from scipy.signal.windows import hann

    angle = 2 * np.pi * np.outer(np.arange(FRAME), np.arange(_FFT)[_LOW]) / _FFT
    return np.asarray(np.hstack([np.cos(angle), np.sin(angle)]) * hann(FRAME + 2)[1:-1, None])


def energy_ratio(filtered: Array, frames: int) -> Array:
    """Return (F,) low-frequency energy over its mean (NLFER); NaN throughout in silence."""
    basis = _low_basis()
    views = framed(filtered, frames, FRAME)
    energy: Array = np.empty(frames)
    for start in range(0, frames, _BLOCK):
        # A matrix product, not a transform: 145 of 4,097 bins are wanted.
        found = np.ascontiguousarray(views[start : start + _BLOCK]) @ basis
        real, imaginary = np.split(found, 2, axis=1)
        energy[start : start + _BLOCK] = np.sqrt(real**2 + imaginary**2).sum(axis=1)
    return np.asarray(energy / energy.mean())


def spectral_pitch(squared: Array, frames: int, voiced: NDArray[np.bool_]) -> tuple[Array, float]:
    """Return a rough F0 in Hz (F,) on every frame, and its spread in Hz.

    Args:
        squared: (n,) band-passed square of the signal.
        frames: F.
        voiced: (F,) where to look.
    """
    from scipy.interpolate import pchip_interpolate
    from scipy.signal import lfilter

    pitch, merit = _candidates(squared, frames, voiced)
    found = pitch[:, 0] > 0
    chosen = _smoothest(pitch[found], merit[found])
    mean = float(chosen.mean())
    spread = max(float(chosen.std()), mean * _LEAST_SPREAD)
    track = np.zeros(frames)
    if found.any():
        track[found] = chosen
    for end in (0, -1):
        if track[end] < mean / 2:
            track[end] = mean
    known = np.flatnonzero(track)
    track = np.asarray(pchip_interpolate(known, track[known], np.arange(frames)))
    track = np.asarray(lfilter(np.ones(3) / 3, 1.0, track))
    track[:2] = track[2:4]
    return track, spread


def _candidates(squared: Array, frames: int, voiced: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return F0 in Hz and merit (F, 4) of the peaks of spectral harmonics correlation; 0 where none."""
    from scipy.fft import rfft
    from scipy.signal.windows import kaiser

    pitch, merit = np.zeros((frames, _PEAKS)), np.ones((frames, _PEAKS))
    views = framed(squared, frames, 2 * FRAME)
    window = kaiser(2 * FRAME, 0.5)
    where = np.flatnonzero(voiced)
    for start in range(0, len(where), _BLOCK):
        block = where[start : start + _BLOCK]
        slices = views[block] * window
        slices -= slices.mean(axis=1, keepdims=True)
        bins = np.asarray(rfft(slices, _FFT, axis=1))[:, : _HARMONICS * _LAST + _HALF + 1]
        magnitude = np.zeros((len(block), bins.shape[1] + _HALF))
        np.abs(bins, out=magnitude[:, _HALF:])
        pitch[block], merit[block] = _peaks(_correlation(magnitude))
    return pitch, merit


def _correlation(magnitude: Array) -> Array:
    """Return (V, _LAST): sum over a window of products of the magnitudes around f, 2f, 3f and 4f."""
    count = _LAST - _FIRST + 1
    total = np.zeros((len(magnitude), count))
    for offset in range(_WINDOW):
        product = np.ones_like(total)
        for harmonic in range(1, _HARMONICS + 1):
            first = harmonic * _FIRST + offset
            product *= magnitude[:, first : first + harmonic * (count - 1) + 1 : harmonic]
        total += product
    correlation = np.zeros((len(magnitude), _LAST))
    # One bin below its frequency, as published implementations have it.
    correlation[:, _FIRST - 1 :] = total
    return correlation


def _peaks(correlation: Array) -> tuple[Array, Array]:
    """Return F0 in Hz and merit (V, 4) of each frame's peaks; 0 and 1 without usable peaks."""
    count = len(correlation)
    pitch, merit = np.zeros((count, _PEAKS)), np.ones((count, _PEAKS))
    largest = correlation[:, _FROM : _TO + 1].max(axis=1)
    data = correlation / np.where(largest > 1e-14, largest, 1.0)[:, None]
    mean = data[:, _FROM : _TO + 1].mean(axis=1)
    inner = slice(_FROM + _CENTRE + 1, _TO - _CENTRE + 1)
    here = data[:, inner]
    is_peak = (
        (here > data[:, inner.start - 1 : inner.stop - 1])
        & (here > data[:, inner.start + 1 : inner.stop + 1])
        & (here > _THRESHOLD_2 * mean[:, None])
        & (mean <= 1 / _THRESHOLD_1)[:, None]
    )
    frame, bin_index = np.nonzero(is_peak)
    bin_index += inner.start
    around = data[frame[:, None], bin_index[:, None] + np.arange(-_CENTRE, _CENTRE + 1)]
    kept = around.argmax(axis=1) == _CENTRE
    frame, bin_index = frame[kept], bin_index[kept]
    height = data[frame, bin_index]
    order = np.lexsort((bin_index, -height, frame))
    frame, bin_index, height = frame[order], bin_index[order], height[order]
    number = np.bincount(frame, minlength=count)
    first = np.concatenate([[0], np.cumsum(number)[:-1]])
    # Fewer than four: where four or more are found the frame tells nothing, as in pYAAPT.
    tells = (number > 0) & (number < _PEAKS)
    best = np.where(tells, height[np.minimum(first, max(len(height) - 1, 0))] if len(height) else 0.0, 0.0)
    tells &= ~(best / np.where(mean > 0, mean, 1.0) < _THRESHOLD_1)
    rows = np.flatnonzero(tells)
    for rank in range(_PEAKS):
        # What is missing is filled with the best.
        index = first[rows] + np.where(rank < number[rows], rank, 0)
        pitch[rows, rank] = bin_index[index] * _BIN
        merit[rows, rank] = height[index]
    return pitch, merit


def _smoothest(pitch: Array, merit: Array) -> Array:
    """Return F0 in Hz of the frames that have candidates (V, 4), chosen by dynamic programming."""
    if not len(pitch):
        return np.array([_TYPICAL])
    mean, spread = pitch[:, 0].mean(), pitch[:, 0].std()
    weakest = (np.abs(pitch - 0.8 * mean) * (3 - merit)).argmin(axis=1)
    rows = np.arange(len(pitch))
    pitch[rows, weakest] = running_median(pitch[rows, weakest], _MEDIAN)
    if len(pitch) <= 2:
        return np.full(len(pitch), _TYPICAL)
    jump = np.zeros((len(pitch), _PEAKS, _PEAKS))
    jump[1:] = np.abs(pitch[1:, :, None] - pitch[:-1, None, :]) / F0_MIN
    cost = _PATH_WEIGHT * spread / mean * (0.05 * jump + jump**2)
    path = cheapest_path(1.0 - merit, cost)
    return running_median(pitch[rows, path], _MEDIAN)
