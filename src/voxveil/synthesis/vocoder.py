"""Harmonic-plus-noise neural source-filter vocoder that filters in the STFT domain.

Two sources (:mod:`voxveil.synthesis.source`) are shaped by one gain per frame and frequency bin
each. The gain is a prior, the log-mel spectrum interpolated over frequency, plus a residual
that a small network learns from the log-mel, F0 and voicing. With an untrained (zero) residual
it already speaks: training only corrects it. After Wang, Takaki and Yamagishi, "Neural
source-filter waveform models for statistical parametric speech synthesis", 2019, with the
time-domain filter replaced by spectral gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import HOP, MEL_BANDS, SAMPLE_RATE
from voxveil.audio.mel import FFT_SIZE, WINDOW, mel_filters
from voxveil.synthesis.network import MelNetwork
from voxveil.synthesis.source import harmonic_source

__all__ = ["Vocoder", "VocoderSize"]

BINS = FFT_SIZE // 2 + 1
_LIMIT = 5.0


@dataclass(frozen=True)
class VocoderSize:
    """Everything needed to rebuild the network.

    Attributes:
        channels: Width of the filter network.
        blocks: Its residual convolution blocks.
    """

    channels: int
    blocks: int = 3


class Vocoder(MelNetwork):
    """Log-mel, F0 and voicing to a waveform of exactly the samples asked for."""

    kind = "stft-source-filter"
    size_type = VocoderSize
    size: VocoderSize
    prior: torch.Tensor
    tilt: torch.Tensor

    def __init__(self, size: VocoderSize) -> None:
        super().__init__(size)
        self.register_buffer("prior", torch.from_numpy(envelope_weights()), persistent=False)
        self.register_buffer("tilt", torch.linspace(0.0, 1.0, BINS)[:, None], persistent=False)
        self.enter = nn.Conv1d(MEL_BANDS + 2, size.channels, 5, padding=2)
        self.blocks = nn.ModuleList(
            nn.Conv1d(size.channels, size.channels, 3, padding=2**i, dilation=2**i)
            for i in range(size.blocks)
        )
        self.leave = nn.Conv1d(size.channels, 2 * BINS, 1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)  # type: ignore[arg-type]

    @property
    def reach(self) -> int:
        """Frames each side that a sample sees: the filter network and two analysis windows."""
        return 2 + sum(1 << i for i in range(self.size.blocks)) + -(-WINDOW // HOP)

    def gains(
        self, log_mel: torch.Tensor, f0: torch.Tensor, voicing: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gains (batch, 513, K) of the harmonic and of the noise source.

        Args:
            log_mel: (batch, K, 80), natural log (:func:`voxveil.audio.mel.log_mel`).
            f0: (batch, K) in Hz, positive.
            voicing: (batch, K) in [0, 1].
        """
        hidden = self.enter(self.conditions(log_mel, f0, voicing))
        for block in self.blocks:
            hidden = hidden + block(nn.functional.silu(hidden))
        residual = self.leave(nn.functional.silu(hidden))
        residual = _LIMIT * torch.tanh(residual / _LIMIT)
        harmonic, noise = residual.chunk(2, dim=1)
        envelope = self.prior @ log_mel.transpose(1, 2)
        # Voiced speech is harmonic at low and noisy at high frequencies; the network refines this.
        voiced = voicing[:, None, :]
        harmonic = envelope + harmonic - 1.5 * self.tilt
        noise = envelope + noise - voiced * (2.5 - 2.0 * self.tilt)
        return torch.exp(harmonic), torch.exp(noise)

    def forward(
        self,
        log_mel: torch.Tensor,
        f0: torch.Tensor,
        voicing: torch.Tensor,
        noise: torch.Tensor,
        start: float = 0.0,
    ) -> torch.Tensor:
        """Return the waveform.

        Args:
            log_mel: (batch, K, 80), natural log.
            f0: (batch, K) in Hz, positive everywhere.
            voicing: (batch, K) in [0, 1].
            noise: (batch, n) noise source with K = n // 160 + 1.
            start: Periods of F0 before the first sample.

        Returns:
            (batch, n).
        """
        pulses, breath = self.spectra(log_mel, f0, voicing, noise, start)
        return self.waveform(pulses + breath, noise.shape[1])

    def spectra(
        self,
        log_mel: torch.Tensor,
        f0: torch.Tensor,
        voicing: torch.Tensor,
        noise: torch.Tensor,
        start: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the spectra (batch, 513, K, 2) of the harmonic and of the noise part of :meth:`forward`."""
        with torch.no_grad():
            pulses = harmonic_source(f0, voicing, noise.shape[1], start)
            spectra = torch.view_as_real(self._stft(torch.cat([pulses, noise])))
        first, second = spectra.chunk(2)
        harmonic, breath = self.gains(log_mel, f0, voicing)
        return first * harmonic[..., None], second * breath[..., None]

    def waveform(self, spectrum: torch.Tensor, samples: int) -> torch.Tensor:
        """Return the (batch, samples) audio of a (batch, 513, K, 2) spectrum."""
        window = torch.hann_window(WINDOW, device=spectrum.device)
        shaped = torch.view_as_complex(spectrum.float())
        return torch.istft(shaped, FFT_SIZE, HOP, WINDOW, window, length=samples)

    def _stft(self, audio: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(WINDOW, device=audio.device)
        return torch.stft(audio, FFT_SIZE, HOP, WINDOW, window, pad_mode="constant", return_complex=True)


@lru_cache(maxsize=1)
def envelope_weights() -> NDArray[np.float32]:
    """Return (513, 80) weights that turn a log-mel frame into a smooth log envelope per bin.

    Rows sum to 1. Triangles over mel band centres at least 100 Hz wide: the lowest bands are
    narrower than a harmonic, and harmonics must come from the source, not from the envelope.
    """
    bins = np.linspace(0.0, SAMPLE_RATE / 2, BINS)
    filters = mel_filters()
    centres = (filters @ bins) / filters.sum(axis=1)
    spacing = np.gradient(centres)
    width = np.maximum(100.0, np.interp(bins, centres, spacing))
    weights = np.maximum(0.0, 1.0 - np.abs(bins[:, None] - centres) / width[:, None])
    # Beyond the last centre the last band holds.
    weights[bins > centres[-1]] = np.eye(MEL_BANDS)[-1]
    weights[bins < centres[0]] = np.maximum(weights[bins < centres[0]], 1e-3 * np.eye(MEL_BANDS)[0])
    result: NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return result
