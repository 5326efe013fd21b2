r"""F0 by pYIN (Mauch and Dixon, "PYIN: a fundamental frequency estimator using probabilistic threshold
distributions", ICASSP 2014), written for the attackers.

Frames of 64 ms every 10 ms, 65 to 450 Hz in 107 steps of equal ratio (31.6 cents). The threshold of
YIN is distributed as Beta(2, 18): a trough of the cumulative mean normalized difference is chosen
with the probability that the threshold lies between it and the lowest trough before it, which is
exact where the paper sums over 100 thresholds. A hidden Markov model over 107 pitches, voiced or
not, follows the likeliest path.

The library's own tracker (YAAPT) is not used here: an attacker must not share a fault with what it
attacks.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count

__all__ = ["FRAME", "PITCHES", "PITCH_HIGH", "PITCH_LOW", "pitch_values", "track_pitches"]

#: Samples of an analysis frame: 64 ms.
FRAME = 1024
#: Lowest and highest F0 in Hz.
PITCH_LOW, PITCH_HIGH = 65.0, 450.0
#: Pitches told apart, at equal ratios.
PITCHES = 107

_LONGEST = int(np.ceil(SAMPLE_RATE / PITCH_LOW)) + 1
_SHORTEST = int(SAMPLE_RATE / PITCH_HIGH) - 1
_WINDOW = FRAME - _LONGEST
_FFT = 2048
#: Weight of the lowest trough where every trough lies above the threshold (Mauch and Dixon).
_NO_TROUGH = 0.01
#: Probability that a frame is voiced where the one before was not, and the reverse.
_SWITCH = 0.01
#: Octaves per second that pitch may move, in either direction.
_SPEED = 35.92
_BLOCK = 2048

FloatArray = NDArray[np.float64]


def pitch_values() -> FloatArray:
    """Return the (107,) pitches in Hz, ascending."""
    return np.geomspace(PITCH_LOW, PITCH_HIGH, PITCHES)


def track_pitches(audio: NDArray[np.floating]) -> NDArray[np.int64]:
    """Track pitch on the shared frame grid.

    Args:
        audio: (n,) finite samples at 16 kHz.

    Returns:
        (K,) index into :func:`pitch_values`, -1 where unvoiced, K = n // 160 + 1; frame k is centred at
        sample 160 k.
    """
    frames = frame_count(len(audio))
    padded = np.pad(np.asarray(audio, dtype=np.float64), (FRAME // 2, FRAME))
    observed = np.concatenate(
        [_observed(padded, start, min(start + _BLOCK, frames)) for start in range(0, frames, _BLOCK)]
    )
    return _best_path(observed)


def _observed(padded: FloatArray, first: int, last: int) -> FloatArray:
    """Return (frames, 107) probabilities that a frame is voiced with each pitch."""
    index = np.arange(first, last)[:, None] * HOP + np.arange(FRAME)
    return _probabilities(_normalized_difference(padded[index]))


def _normalized_difference(frames: FloatArray) -> FloatArray:
    """Return YIN's (frames, lags) d'(lag) for lags 0.._LONGEST."""
    spectrum = np.fft.rfft(frames, _FFT)
    head = np.fft.rfft(frames[:, :_WINDOW], _FFT)
    products = np.fft.irfft(spectrum * head.conj(), _FFT)[:, : _LONGEST + 1]
    power = np.concatenate([np.zeros((len(frames), 1)), np.cumsum(frames**2, axis=1)], axis=1)
    lags = np.arange(_LONGEST + 1)
    energy = power[:, lags + _WINDOW] - power[:, lags]
    difference = np.maximum(energy[:, :1] + energy - 2.0 * products, 0.0)
    mean = np.cumsum(difference[:, 1:], axis=1) / np.arange(1, _LONGEST + 1)
    # Silence has no difference at any lag: 1 everywhere, no trough.
    scale = 1e-10 * np.maximum(energy[:, :1], 1e-10)
    result: FloatArray = np.ones_like(difference)
    result[:, 1:] = np.where(mean > scale, difference[:, 1:] / np.maximum(mean, 1e-300), 1.0)
    return result


def _probabilities(normalized: FloatArray) -> FloatArray:
    middle = normalized[:, _SHORTEST:_LONGEST]
    before, after = normalized[:, _SHORTEST - 1 : _LONGEST - 1], normalized[:, _SHORTEST + 1 : _LONGEST + 1]
    trough = (middle < before) & (middle <= after) & (middle < 1.0)
    height = np.where(trough, middle, 1.0)
    lowest = np.minimum.accumulate(height, axis=1)
    lowest_before = np.concatenate([np.ones((len(height), 1)), lowest[:, :-1]], axis=1)
    chance = np.where(trough, np.maximum(_threshold_cdf(lowest_before) - _threshold_cdf(height), 0.0), 0.0)
    best = height.argmin(axis=1)
    rows = np.arange(len(height))
    chance[rows, best] += np.where(trough[rows, best], _NO_TROUGH * _threshold_cdf(height[rows, best]), 0.0)
    # Parabola through the trough and its neighbours.
    bend = before + after - 2.0 * middle
    shift = np.where(bend > 1e-12, 0.5 * (before - after) / np.maximum(bend, 1e-12), 0.0)
    lag = np.arange(_SHORTEST, _LONGEST) + np.clip(shift, -0.5, 0.5)
    position = np.log(SAMPLE_RATE / lag / PITCH_LOW) / np.log(PITCH_HIGH / PITCH_LOW) * (PITCHES - 1)
    state = np.rint(position).astype(np.int64)
    usable = (chance > 0) & (state >= 0) & (state < PITCHES)
    frame, candidate = np.nonzero(usable)
    observed = np.zeros((len(height), PITCHES))
    np.add.at(observed, (frame, state[frame, candidate]), chance[frame, candidate])
    return observed


def _threshold_cdf(value: FloatArray) -> FloatArray:
    """Return the distribution function of Beta(2, 18): 1 - (1 - x)^18 (1 + 18 x)."""
    x = np.clip(value, 0.0, 1.0)
    result: FloatArray = 1.0 - (1.0 - x) ** 18 * (1.0 + 18.0 * x)
    return result


@lru_cache(maxsize=1)
def _steps() -> tuple[int, FloatArray]:
    """Return the widest step and (107, steps) log probabilities of arriving from each neighbour."""
    octaves = np.log2(PITCH_HIGH / PITCH_LOW) / (PITCHES - 1)
    widest = int(round(_SPEED * HOP / SAMPLE_RATE / octaves))
    offsets = np.arange(-widest, widest + 1)
    weight = (widest + 1.0 - np.abs(offsets)) / (widest + 1.0)
    origin = np.arange(PITCHES)[:, None] + offsets
    inside = (origin >= 0) & (origin < PITCHES)
    leaving = np.array([weight[(s + offsets >= 0) & (s + offsets < PITCHES)].sum() for s in range(PITCHES)])
    share = weight / leaving[np.clip(origin, 0, PITCHES - 1)]
    return widest, np.log(np.where(inside, share, 1e-300))


def _best_path(observed: FloatArray) -> NDArray[np.int64]:
    """Return the likeliest pitches by Viterbi's algorithm, -1 where unvoiced."""
    from numpy.lib.stride_tricks import sliding_window_view

    frames = len(observed)
    widest, step = _steps()
    voiced = np.clip(observed.sum(axis=1), 0.0, 1.0)
    emission = np.empty((frames, 2, PITCHES))
    emission[:, 0] = observed
    emission[:, 1] = ((1.0 - voiced) / PITCHES)[:, None]
    emission = np.log(np.maximum(emission, 1e-12))
    stay, switch = np.log(1.0 - _SWITCH), np.log(_SWITCH)
    total = emission[0].copy()
    came_from = np.zeros((frames, 2, PITCHES), dtype=np.int64)
    rows = np.arange(2)[:, None]
    for frame in range(1, frames):
        padded = np.pad(total, ((0, 0), (widest, widest)), constant_values=-np.inf)
        reached = sliding_window_view(padded, 2 * widest + 1, axis=1) + step
        choice = reached.argmax(axis=2)
        best = np.take_along_axis(reached, choice[:, :, None], axis=2)[:, :, 0]
        origin = np.arange(PITCHES) + choice - widest
        kept, changed = best + stay, best[::-1] + switch
        changes = changed > kept
        mode = np.where(changes, 1 - rows, rows)
        came_from[frame] = mode * PITCHES + np.where(changes, origin[::-1], origin)
        total = np.where(changes, changed, kept) + emission[frame]
    path = np.empty(frames, dtype=np.int64)
    at = int(total.argmax())
    for frame in range(frames - 1, -1, -1):
        path[frame] = at
        at = int(came_from[frame].ravel()[at])
    return np.where(path < PITCHES, path, -1)
