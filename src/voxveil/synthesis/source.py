"""The excitation of the vocoder: a band-limited pulse train and white noise.

The pulse train is the sum of all harmonics below the Nyquist frequency in closed form (the
Dirichlet kernel), with the phase as the running sum of F0. Both sources have a mean
short-time magnitude near 1, so a spectral envelope can be laid on them directly.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.runtime.seeding import stream

__all__ = [
    "NOISE_SCALE",
    "NoiseTape",
    "cycles",
    "fill_unvoiced",
    "harmonic_source",
    "noise_source",
    "to_samples",
]

NYQUIST = SAMPLE_RATE / 2
#: Standard deviation of white noise whose mean STFT magnitude is 1 with a 640-sample Hann window:
#: E|X| = sigma sqrt(sum w^2) sqrt(pi) / 2.
NOISE_SCALE = 1.0 / (np.sqrt(640 * 3 / 8) * np.sqrt(np.pi) / 2)


def fill_unvoiced(f0: NDArray[np.float32], default: float) -> NDArray[np.float32]:
    """Give unvoiced frames an F0, so that the phase runs on smoothly through them.

    Args:
        f0: (K,) in Hz, 0 where unvoiced.
        default: F0 in Hz of a sequence without any voiced frame.

    Returns:
        (K,) in Hz, positive: log-linear between voiced frames, constant before the first and after the last.
    """
    voiced = np.flatnonzero(f0 > 0)
    if not len(voiced):
        return np.full(len(f0), default, dtype=np.float32)
    filled = np.exp(np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced].astype(np.float64))))
    return filled.astype(np.float32)


def to_samples(frames: torch.Tensor, samples: int) -> torch.Tensor:
    """Interpolate linearly from the frame grid to samples; constant after the last frame centre.

    Args:
        frames: (batch, K); frame k lies at sample 160 k.
        samples: Number of samples n with K = n // 160 + 1.

    Returns:
        (batch, n), of the dtype of ``frames``.
    """
    following = torch.cat([frames[:, 1:], frames[:, -1:]], dim=1)
    weight = torch.arange(HOP, device=frames.device, dtype=frames.dtype) / HOP
    grid = frames[:, :, None] + (following - frames)[:, :, None] * weight
    return grid.flatten(1)[:, :samples]


def cycles(f0: torch.Tensor, samples: int) -> torch.Tensor:
    """Return (batch, n) float64: periods of F0 up to and with each sample.

    Args:
        f0: (batch, K) in Hz.
        samples: n.
    """
    # Float64: the phase of a long file is a sum of millions of terms, and the kernel multiplies it by 100.
    return torch.cumsum(to_samples(f0.double(), samples) / SAMPLE_RATE, dim=1)


def harmonic_source(
    f0: torch.Tensor, voicing: torch.Tensor, samples: int, start: float = 0.0
) -> torch.Tensor:
    """Return the pulse train sum_h cos(h phi), h f0 < 8 kHz, at unit pulse height, gated by voicing.

    Args:
        f0: (batch, K) in Hz, positive everywhere (:func:`fill_unvoiced`).
        voicing: (batch, K) in [0, 1].
        samples: Number of samples n with K = n // 160 + 1.
        start: Periods before the first sample, of a window within a longer recording.

    Returns:
        (batch, n) float32.
    """
    hertz = to_samples(f0.double(), samples)
    passed = cycles(f0, samples) + start
    phase = 2.0 * np.pi * (passed - torch.floor(passed))
    harmonics = torch.ceil(NYQUIST / hertz) - 1.0
    half = torch.sin(phase / 2)
    at_pulse = half.abs() < 1e-7
    kernel = torch.sin((harmonics + 0.5) * phase) / torch.where(at_pulse, torch.ones_like(half), half)
    total = torch.where(at_pulse, harmonics, (kernel - 1.0) / 2)
    gate = to_samples(voicing.double(), samples)
    return (total * (hertz / NYQUIST) * gate).float()


def noise_source(samples: int) -> NDArray[np.float32]:
    """Return the public white noise of an utterance of ``samples`` samples, mean STFT magnitude 1.

    It depends on the sample count alone (public by definition): it is part of the voice, not of
    the privacy, and equal inputs give equal speech.
    """
    return NoiseTape(samples).take(0, samples)


class NoiseTape:
    """The noise of :func:`noise_source`, a piece at a time.

    Args:
        samples: Sample count of the whole.
    """

    def __init__(self, samples: int) -> None:
        self._stream = stream(0, "vocoder", "noise", samples)
        self._kept = np.zeros(0, np.float32)
        self._first = 0

    def take(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return samples ``start`` to ``stop``; samples before ``start`` are discarded."""
        missing = stop - self._first - len(self._kept)
        fresh = self._stream.standard_normal(max(0, missing), dtype=np.float32)
        self._kept = np.concatenate([self._kept, fresh * np.float32(NOISE_SCALE)])[start - self._first :]
        self._first = start
        return self._kept[: stop - start]
