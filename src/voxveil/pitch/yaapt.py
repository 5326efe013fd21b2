"""F0 by YAAPT (Zahorian & Hu 2008), with one range for everybody.

The range is a constant: one fitted to a speaker would spend other utterances of that speaker.
"""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.errors import InputError, MissingExtraError

__all__ = ["F0_MAX", "F0_MIN", "track_f0"]

#: Lowest F0 searched, in Hz.
F0_MIN = 60.0
#: Highest F0 searched, in Hz.
F0_MAX = 400.0

_FRAME_MS = 35.0
#: YAAPT's frame k starts at sample 160 k of what it is given and is 560 samples long.
_HALF_FRAME = int(_FRAME_MS * SAMPLE_RATE / 1000) // 2
#: Fewer samples than this (0.1 s) hold too few frames for YAAPT's smoothing filters.
_MIN_SAMPLES = 1_600
#: Loudest sample below which a recording counts as silence (one step of 16 bit).
_SILENCE = 1.0 / 32768


def track_f0(audio: NDArray[np.floating]) -> NDArray[np.float32]:
    """Track F0 on the shared frame grid.

    Args:
        audio: (n,) finite samples at 16 kHz, n >= 1.

    Returns:
        (K,) float32 in Hz, 0 where unvoiced, K = n // 160 + 1; frame k is centred at sample 160 k.
        Silence and clips under 0.1 s are unvoiced throughout.

    Raises:
        InputError: NaN or infinite samples.
    """
    frames = frame_count(len(audio))
    f0 = np.zeros(frames, dtype=np.float32)
    if not np.isfinite(audio).all():
        raise InputError("F0 needs finite samples, got NaN or infinity")
    samples = np.asarray(audio, dtype=np.float64)
    peak = float(np.abs(samples).max(initial=0.0))
    if len(samples) < _MIN_SAMPLES or peak <= _SILENCE:
        return f0
    padded = np.pad(samples / peak, (_HALF_FRAME, 2 * _HALF_FRAME + HOP))
    tracked = _yaapt(padded)[:frames]
    f0[: len(tracked)] = np.where((tracked >= F0_MIN) & (tracked <= F0_MAX), tracked, 0.0)
    return f0


def _yaapt(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    try:
        import amfm_decompy.basic_tools as basic
        from amfm_decompy import pYAAPT
    except ImportError:
        raise MissingExtraError("AMFM_decompy", "data") from None
    signal = basic.SignalObj(samples, SAMPLE_RATE)
    # It prints and warns about empty means where nothing is voiced; that outcome is expected here.
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            track = pYAAPT.yaapt(
                signal,
                frame_length=_FRAME_MS,
                tda_frame_length=_FRAME_MS,
                frame_space=1000.0 * HOP / SAMPLE_RATE,
                f0_min=F0_MIN,
                f0_max=F0_MAX,
            )
        except (IndexError, ValueError):
            # No voiced frame, or too few for its interpolation (numpy raises from inside YAAPT).
            return np.zeros(0)
    return np.nan_to_num(np.asarray(track.samp_values, dtype=np.float64))
