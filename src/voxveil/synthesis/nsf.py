"""hn-sinc neural source-filter vocoder: time-domain filter blocks behind the mel-shaped sources.

Wang and Yamagishi, "Neural harmonic-plus-noise waveform model with trainable maximum voice frequency
for text-to-speech synthesis", SSW 2019. Two branches, harmonic and noise, each a chain of dilated
convolutions on the waveform, conditioned on the spectrum; windowed-sinc filters whose cutoff follows
a predicted maximum voiced frequency join them. The sources come shaped from the small vocoder
(:mod:`voxveil.synthesis.vocoder`), and every block starts as the identity, so that an untrained one
already speaks. Such blocks diverge at learning rate 2e-3; use 5e-4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import HOP, MEL_BANDS
from voxveil.synthesis.network import SizedNetwork
from voxveil.synthesis.source import to_samples
from voxveil.synthesis.vocoder import Vocoder, VocoderSize

__all__ = ["NsfSize", "NsfVocoder", "sinc_filters"]

#: Taps of the filters that join the branches.
_TAPS = 31
#: Maximum voiced frequency where the network says nothing, as a share of the Nyquist frequency.
_VOICED, _UNVOICED = 0.7, 0.1
#: How far the network may move it.
_RANGE = 0.25


@dataclass(frozen=True)
class NsfSize:
    """Everything needed to rebuild the network.

    Attributes:
        channels: Width of the small vocoder that shapes the sources.
        width: Width of the filter blocks.
        harmonic: Filter blocks of the harmonic branch.
        noise: Filter blocks of the noise branch.
        layers: Dilated convolutions of a block, dilation 1, 2, 4 and so on.
    """

    channels: int
    width: int = 64
    harmonic: int = 5
    noise: int = 1
    layers: int = 10


class _Block(nn.Module):
    """A residual block of dilated convolutions on a waveform."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i) for i in range(layers)
        )
        self.leave = nn.Conv1d(width, 1, 1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)  # type: ignore[arg-type]

    def forward(self, audio: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.enter(audio))
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer(hidden) + condition)
        result: torch.Tensor = audio + self.leave(hidden * (len(self.layers) + 1) ** -0.5)
        return result


class NsfVocoder(SizedNetwork):
    """Log-mel, F0 and voicing to a waveform of exactly the samples asked for."""

    kind = "hn-sinc-nsf"
    size_type = NsfSize
    size: NsfSize

    def __init__(self, size: NsfSize) -> None:
        super().__init__(size)
        self.source = Vocoder(VocoderSize(size.channels))
        self.condition = nn.Conv1d(MEL_BANDS + 2, size.width, 5, padding=2)
        self.cutoff = nn.Conv1d(size.width, 1, 1)
        nn.init.zeros_(self.cutoff.weight)
        nn.init.zeros_(self.cutoff.bias)  # type: ignore[arg-type]
        self.harmonic = nn.ModuleList(_Block(size.width, size.layers) for _ in range(size.harmonic))
        self.noise = nn.ModuleList(_Block(size.width, size.layers) for _ in range(size.noise))

    @property
    def reach(self) -> int:
        """Frames each side that a sample sees."""
        samples = max(self.size.harmonic, self.size.noise) * ((1 << self.size.layers) - 1) + _TAPS // 2
        return self.source.reach + 2 + -(-samples // HOP)

    def normalize_by(self, mean: NDArray[np.float32], sd: NDArray[np.float32]) -> None:
        """Set the constants (80,) that normalize the log-mel; of public speech."""
        self.source.normalize_by(mean, sd)

    def forward(
        self,
        log_mel: torch.Tensor,
        f0: torch.Tensor,
        voicing: torch.Tensor,
        noise: torch.Tensor,
        start: float = 0.0,
    ) -> torch.Tensor:
        """Return the waveform (batch, n); arguments as for :meth:`Vocoder.forward`."""
        samples = noise.shape[1]
        parts = self.source.spectra(log_mel, f0, voicing, noise, start)
        pulses, breath = (self.source.waveform(part, samples) for part in parts)
        condition = torch.tanh(self.condition(self.source.conditions(log_mel, f0, voicing)))
        base = _UNVOICED + (_VOICED - _UNVOICED) * voicing
        cutoff = (base + _RANGE * torch.tanh(self.cutoff(condition)[:, 0])).clamp(0.02, 0.98)
        along = to_samples(condition.flatten(0, 1), samples).reshape(*condition.shape[:2], samples)
        first, second = pulses[:, None], breath[:, None]
        for block in self.harmonic:
            first = block(first, along)
        for block in self.noise:
            second = block(second, along)
        return _joined(first[:, 0], second[:, 0], to_samples(cutoff, samples))


def sinc_filters(cutoff: torch.Tensor) -> torch.Tensor:
    """Return low-pass filters (..., 31) of gain 1 at 0 Hz; the high-pass is a unit pulse minus them.

    Args:
        cutoff: (...,) share of the Nyquist frequency in (0, 1).
    """
    offset = torch.arange(_TAPS, device=cutoff.device, dtype=cutoff.dtype) - _TAPS // 2
    window = torch.hamming_window(_TAPS, periodic=False, device=cutoff.device, dtype=cutoff.dtype)
    taps = cutoff[..., None] * torch.sinc(cutoff[..., None] * offset) * window
    return taps / taps.sum(dim=-1, keepdim=True)


def _joined(harmonic: torch.Tensor, noise: torch.Tensor, cutoff: torch.Tensor) -> torch.Tensor:
    """Return low-passed harmonics plus high-passed noise (batch, n), each at its sample's cutoff.

    The high-pass being the complement of the low-pass, that is the noise plus the low-passed difference.
    """
    half = _TAPS // 2
    around = functional.pad(harmonic - noise, (half, half)).unfold(1, _TAPS, 1)
    return noise + torch.einsum("bnt,bnt->bn", around, sinc_filters(cutoff))
