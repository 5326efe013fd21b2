"""Log-mel spectrogram on the shared frame grid, used for content, speakers and synthesis."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, MEL_BANDS, SAMPLE_RATE

__all__ = ["FFT_SIZE", "FLOOR", "WINDOW", "hertz_to_mel", "log_mel", "mel_edges", "mel_filters"]

FFT_SIZE = 1024
WINDOW = 640
FLOOR = 1e-5


def log_mel(audio: torch.Tensor) -> torch.Tensor:
    """Return the natural-log mel magnitude spectrogram.

    Args:
        audio: (batch, samples) in [-1, 1], 16 kHz.

    Returns:
        (batch, frames, 80) with frames = samples // 160 + 1; frame k is centred at sample 160 k.
        Magnitudes are floored at 1e-5 before the logarithm.
    """
    window = torch.hann_window(WINDOW, device=audio.device)
    # Zero padding, not reflection: an utterance shorter than half a window is still allowed.
    spectrum = torch.stft(
        audio, FFT_SIZE, HOP, WINDOW, window, center=True, pad_mode="constant", return_complex=True
    ).abs()
    filters = torch.from_numpy(mel_filters()).to(audio.device)
    return torch.log(torch.clamp(filters @ spectrum, min=FLOOR)).transpose(1, 2)


def hertz_to_mel(hertz: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert a frequency in Hz to the HTK mel scale."""
    return np.asarray(2595.0 * np.log10(1.0 + np.asarray(hertz) / 700.0))


@lru_cache(maxsize=1)
def mel_edges() -> NDArray[np.float64]:
    """Return the (82,) frequencies in Hz, evenly spaced on the mel scale, that bound the 80 bands."""
    places = np.linspace(0.0, float(hertz_to_mel(SAMPLE_RATE / 2)), MEL_BANDS + 2)
    return np.asarray(700.0 * (10.0 ** (places / 2595.0) - 1.0))


@lru_cache(maxsize=1)
def mel_filters() -> NDArray[np.float32]:
    """Return the (80, 513) triangular filters on the HTK mel scale, 0 to 8 kHz, area-normalized."""
    edges = mel_edges()
    bins = np.linspace(0.0, SAMPLE_RATE / 2, FFT_SIZE // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    filters = np.maximum(0.0, np.minimum(rising, falling))
    # The narrowest bands can fall between two bins; give them the nearest one.
    for band in np.flatnonzero(filters.sum(axis=1) == 0):
        filters[band, np.argmin(np.abs(bins - edges[band + 1]))] = 1.0
    result: NDArray[np.float32] = (filters / filters.sum(axis=1, keepdims=True)).astype(np.float32)
    return result
