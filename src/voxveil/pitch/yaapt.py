"""F0 by YAAPT (Zahorian & Hu 2008), with one range for everybody.

The range is a constant: one fitted to a speaker would spend other utterances of that speaker.

YAAPT decides voicing by low-frequency energy relative to the utterance's mean, so it finds F0
in white noise and in whispered speech. Here a frame stays voiced only if the signal repeats
itself after one period (normalised cross-correlation), for at least three frames in a row.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.errors import InputError, MissingExtraError

__all__ = ["F0_MAX", "F0_MIN", "PERIODICITY", "track_f0"]

#: Lowest F0 searched, in Hz.
F0_MIN = 60.0
#: Highest F0 searched, in Hz.
F0_MAX = 400.0
#: Smallest cross-correlation of two neighbouring periods in a voiced frame. White noise reaches
#: 0.35 at the lag YAAPT picks, 19 of 20 voiced frames of clean speech pass 0.6.
PERIODICITY = 0.5

#: ``warnings.catch_warnings`` swaps state of the whole process: one thread at a time.
_WARNINGS = threading.Lock()
_FRAME_MS = 35.0
_FRAME = int(_FRAME_MS * SAMPLE_RATE / 1000)
_FILTER_ORDER = 150
#: Zeros before sample 0. YAAPT's frame k is samples 160 k to 160 k + 560 of its band-pass output,
#: which lags by half the filter order: with these, frame k is centred at sample 160 k.
_LEAD = _FRAME // 2 - _FILTER_ORDER // 2
#: Zeros behind the end, so that the last frame is complete.
_TRAIL = _FRAME + HOP
#: Fewer samples than this (0.1 s) hold too few frames for YAAPT's smoothing filters.
_MIN_SAMPLES = 1_600
#: Loudest sample below which a recording counts as silence (one step of 16 bit).
_SILENCE = 1.0 / 32768
_LONGEST_PERIOD = int(SAMPLE_RATE / F0_MIN) + 1
_LAG_SLACK = 4
_SHORTEST_RUN = 3

Track = NDArray[np.float64]


def track_f0(audio: NDArray[np.floating]) -> NDArray[np.float32]:
    """Track F0 on the shared frame grid.

    Args:
        audio: (n,) finite samples at 16 kHz, n >= 1.

    Returns:
        (K,) float32 in Hz, 0 where unvoiced, K = n // 160 + 1; frame k is centred at sample 160 k.
        Silence and clips under 0.1 s are unvoiced throughout. The level does not matter.

    Raises:
        InputError: NaN or infinite samples.
    """
    frames = frame_count(len(audio))
    f0 = np.zeros(frames, dtype=np.float32)
    if not np.isfinite(audio).all():
        raise InputError("F0 needs finite samples, got NaN or infinity")
    samples = np.asarray(audio, dtype=np.float64)
    if len(samples) < _MIN_SAMPLES or np.ptp(samples) <= _SILENCE:
        return f0
    samples = samples - samples.mean()
    padded = np.pad(samples / np.abs(samples).max(), (_LEAD, _TRAIL))
    tracked, filtered = _yaapt(padded)
    tracked = _periodic(_one_lag_shorter(tracked[:frames]), filtered)
    f0[: len(tracked)] = tracked
    return f0


def _yaapt(samples: Track) -> tuple[Track, Track]:
    """Return YAAPT's track and the band-passed samples it is based on."""
    try:
        import amfm_decompy.basic_tools as basic
        from amfm_decompy import pYAAPT
    except ImportError:
        raise MissingExtraError("AMFM_decompy", "data") from None
    signal = basic.SignalObj(samples, SAMPLE_RATE)
    # It prints and warns about empty means where nothing is voiced; that outcome is expected here.
    # A redirected stdout would stay redirected where two threads overlap.
    pYAAPT.print = _say_nothing
    with _WARNINGS, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            track = pYAAPT.yaapt(
                signal,
                frame_length=_FRAME_MS,
                tda_frame_length=_FRAME_MS,
                frame_space=1000.0 * HOP / SAMPLE_RATE,
                f0_min=F0_MIN,
                f0_max=F0_MAX,
                bp_forder=_FILTER_ORDER,
            )
        except (IndexError, ValueError):
            # No voiced frame, or too few for its interpolation (numpy raises from inside YAAPT).
            return np.zeros(0), np.zeros(0)
    return np.nan_to_num(np.asarray(track.samp_values, dtype=np.float64)), signal.filtered


def _say_nothing(*_: object) -> None:
    """Stand in for ``print`` inside pYAAPT."""


def _one_lag_shorter(f0: Track) -> Track:
    """Undo the port's off-by-one: pYAAPT 1.0.12 gives rate / (lag + 1), 2.5 % low at 400 Hz."""
    voiced = (f0 >= F0_MIN) & (f0 <= F0_MAX)
    lag = SAMPLE_RATE / np.where(voiced, f0, F0_MIN) - 1.0
    corrected: Track = np.where(voiced, np.clip(SAMPLE_RATE / lag, F0_MIN, F0_MAX), 0.0)
    return corrected


def _periodic(f0: Track, filtered: Track) -> Track:
    """Return ``f0`` (K,) with 0 where the signal does not repeat after one period."""
    voiced = np.flatnonzero(f0)
    if len(voiced) == 0:
        return f0
    width = _FRAME - _LONGEST_PERIOD
    lags = np.rint(SAMPLE_RATE / f0[voiced]).astype(int)
    padded = np.pad(filtered, (0, _FRAME + _LAG_SLACK))
    first = voiced[:, None] * HOP + np.arange(width)
    here = padded[first]
    best = np.full(len(voiced), -1.0)
    for slack in range(-_LAG_SLACK, _LAG_SLACK + 1):
        there = padded[first + (lags + slack)[:, None]]
        energy = np.sqrt((here**2).sum(axis=1) * (there**2).sum(axis=1))
        best = np.maximum(best, (here * there).sum(axis=1) / np.maximum(energy, 1e-12))
    result = f0.copy()
    result[voiced[best < PERIODICITY]] = 0.0
    return _without_short_runs(result)


def _without_short_runs(f0: Track) -> Track:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (f0 > 0).astype(np.int8), [0]])))
    result = f0.copy()
    for start, end in zip(edges[::2], edges[1::2]):
        if end - start < _SHORTEST_RUN:
            result[start:end] = 0.0
    return result
