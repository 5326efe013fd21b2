"""F0 tracking by YAAPT (Zahorian & Hu 2008), with the same range for all speakers.

The frames are those of pYAAPT 1.0.12 (AMFM_decompy), quirks included, so that F0 compares with published
work; a test compares them frame by frame. Here all frames of a step are computed at once.

The range is a constant: one fitted to a speaker would spend other utterances of that speaker.

YAAPT decides voicing by low-frequency energy relative to the utterance's mean, so it finds F0
in white noise and in whispered speech. Here a frame stays voiced only if the signal repeats
itself after one period (normalized cross-correlation), for at least three frames in a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.features.pitch.yaapt.grid import F0_MAX, F0_MIN, FILTER_ORDER, FRAME, band_passed, yaapt_frames
from voxveil.features.pitch.yaapt.refine import final_pitch, ranked
from voxveil.features.pitch.yaapt.spectral import energy_ratio, spectral_pitch
from voxveil.features.pitch.yaapt.temporal import temporal_candidates
from voxveil.runtime.errors import InputError

__all__ = ["F0_MAX", "F0_MIN", "PERIODICITY", "track_f0"]

#: Smallest cross-correlation of two neighbouring periods in a voiced frame. White noise reaches
#: 0.35 at the lag YAAPT picks, 19 of 20 voiced frames of clean speech pass 0.6.
PERIODICITY = 0.5

#: Low-frequency energy over its mean above which a frame may be voiced.
_VOICED = 0.75
#: Zeros before sample 0. YAAPT's frame k is samples 160 k to 160 k + 560 of its band-pass output,
#: which lags by half the filter order: with these, frame k is centred at sample 160 k.
_LEAD = FRAME // 2 - FILTER_ORDER // 2
#: Zeros behind the end, so that the last frame is complete.
_TRAIL = FRAME + HOP
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
    frames = yaapt_frames(len(samples))
    filtered, squared = band_passed(samples), band_passed(samples**2)
    with np.errstate(all="ignore"):
        energy = energy_ratio(filtered, frames)
        voiced = energy > _VOICED
        spectral, spread = spectral_pitch(squared, frames, voiced)
        found = [temporal_candidates(signal, spectral, spread) for signal in (filtered, squared)]
        pitch, merit = (np.hstack(parts) for parts in zip(*found, strict=True))
        pitch, merit = ranked(pitch, merit, spectral, energy, voiced)
        return np.nan_to_num(final_pitch(pitch, merit, energy)), filtered


def _one_lag_shorter(f0: Track) -> Track:
    """Undo the published implementation's off-by-one: rate / (lag + 1), 2.5 % low at 400 Hz."""
    voiced = (f0 >= F0_MIN) & (f0 <= F0_MAX)
    lag = SAMPLE_RATE / np.where(voiced, f0, F0_MIN) - 1.0
    corrected: Track = np.where(voiced, np.clip(SAMPLE_RATE / lag, F0_MIN, F0_MAX), 0.0)
    return corrected


def _periodic(f0: Track, filtered: Track) -> Track:
    """Return ``f0`` (K,) with 0 where the signal does not repeat after one period."""
    voiced = np.flatnonzero(f0)
    if len(voiced) == 0:
        return f0
    width = FRAME - _LONGEST_PERIOD
    lags = np.rint(SAMPLE_RATE / f0[voiced]).astype(int)
    padded = np.pad(filtered, (0, FRAME + _LAG_SLACK))
    first = voiced[:, None] * HOP + np.arange(width)
    here = padded[first]
    best = np.full(len(voiced), -1.0)
    for slack in range(-_LAG_SLACK, _LAG_SLACK + 1):
        delayed = padded[first + (lags + slack)[:, None]]
        energy = np.sqrt((here**2).sum(axis=1) * (delayed**2).sum(axis=1))
        best = np.maximum(best, (here * delayed).sum(axis=1) / np.maximum(energy, 1e-12))
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
