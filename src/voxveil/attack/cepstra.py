"""Cepstral features of speech frames, computed without a trained model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.mel import log_mel
from voxveil.features.speaker.clips import at_least_minimum

__all__ = ["COEFFICIENTS", "frame_log_mel", "is_speech", "speech_cepstra"]

#: Cepstral coefficients, without the one of level.
COEFFICIENTS = 12
#: Frames this far below the loud ones (95th percentile) are no speech, in nat of magnitude: 30 dB.
_DEPTH = 30.0 / 20.0 * np.log(10.0)


def frame_log_mel(audio: NDArray[np.float32], name: str) -> NDArray[np.float64]:
    """Return the (K, 80) log-mel of a clip that is checked and long enough."""
    import torch

    with torch.inference_mode():
        mel = log_mel(torch.from_numpy(at_least_minimum(audio, name))[None])[0]
    return mel.numpy().astype(np.float64)


def is_speech(mel: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which of (K, 80) frames are speech by their level; at least one is."""
    level = np.log(np.exp(mel).mean(axis=1))
    return np.asarray(level >= np.quantile(level, 0.95) - _DEPTH)


def speech_cepstra(audio: NDArray[np.float32], name: str) -> NDArray[np.float64]:
    """Return (S, 24) cepstra and their slopes over 50 ms, of speech frames only.

    The mean over the utterance is removed from the cepstra: what is left is how sounds differ from each
    other, not the voice's colour.
    """
    from scipy.fft import dct

    mel = frame_log_mel(audio, name)
    speech = is_speech(mel)
    cepstra = dct(mel, type=2, norm="ortho", axis=1)[:, 1 : COEFFICIENTS + 1]
    cepstra = cepstra - cepstra[speech].mean(axis=0)
    padded = np.pad(cepstra, ((2, 2), (0, 0)), mode="edge")
    slopes = (2 * (padded[4:] - padded[:-4]) + padded[3:-1] - padded[1:-3]) / 10.0
    result: NDArray[np.float64] = np.concatenate([cepstra, slopes], axis=1)[speech]
    return result
