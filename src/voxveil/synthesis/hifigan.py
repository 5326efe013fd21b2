"""Joint NSF-GAN: HiFi-GAN's generator fed with the harmonic and noise source, trained against discriminators.

Kong, Kim and Bae, "HiFi-GAN", NeurIPS 2020; the source enters each upsampling step through a strided
convolution, as in the baselines of VoicePrivacy 2024. The mel spectrum is upsampled 160 times to 16 kHz.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from voxveil.audio.frames import HOP, MEL_BANDS
from voxveil.runtime.errors import InputError
from voxveil.synthesis.network import MelNetwork
from voxveil.synthesis.source import NOISE_SCALE, harmonic_source

__all__ = ["HifiGan", "HifiGanSize"]

#: Upsampling by step: their product is the hop.
_RATES = (5, 4, 4, 2)
_KERNELS = (3, 7, 11)
_DILATIONS = (1, 3, 5)
_SLOPE = 0.1
#: Frames added in front; with it the middle of frame k's samples lies at sample 160 k.
_LEAD = 1
_OFFSET = HOP * _LEAD + HOP // 2


@dataclass(frozen=True)
class HifiGanSize:
    """Everything needed to rebuild the generator.

    Attributes:
        width: Channels before the first upsampling, halved by each: 512 for HiFi-GAN V1.
        kernels: Of the kernel sizes 3, 7, 11 of the residual blocks, how many are used.
    """

    width: int
    kernels: int = 3


class _Residual(nn.Module):
    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.first = nn.ModuleList(
            weight_norm(nn.Conv1d(channels, channels, kernel, padding=d * (kernel // 2), dilation=d))
            for d in _DILATIONS
        )
        self.second = nn.ModuleList(
            weight_norm(nn.Conv1d(channels, channels, kernel, padding=kernel // 2)) for _ in _DILATIONS
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        for first, second in zip(self.first, self.second, strict=True):
            moved = first(functional.leaky_relu(hidden, _SLOPE))
            hidden = hidden + second(functional.leaky_relu(moved, _SLOPE))
        return hidden


class HifiGan(MelNetwork):
    """Log-mel, F0 and voicing to a waveform of exactly the samples asked for."""

    kind = "nsf-hifigan"
    size_type = HifiGanSize
    size: HifiGanSize

    def __init__(self, size: HifiGanSize) -> None:
        super().__init__(size)
        self.enter = weight_norm(nn.Conv1d(MEL_BANDS + 2, size.width, 7, padding=3))
        self.up, self.source, self.blocks = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        left = HOP
        for index, rate in enumerate(_RATES):
            channels = max(1, size.width >> (index + 1))
            left //= rate
            kernel = 2 * rate + rate % 2
            self.up.append(
                weight_norm(
                    nn.ConvTranspose1d(
                        max(1, size.width >> index), channels, kernel, rate, padding=(kernel - rate) // 2
                    )
                )
            )
            # Two samples of the source per sample of this step, or the sample itself at the last.
            span = 2 * left + left % 2 if left > 1 else 1
            self.source.append(nn.Conv1d(2, channels, span, left, padding=(span - left) // 2))
            self.blocks.append(
                nn.ModuleList(_Residual(channels, kernel) for kernel in _KERNELS[: size.kernels])
            )
        self.leave = weight_norm(nn.Conv1d(channels, 1, 7, padding=3))

    @property
    def reach(self) -> int:
        """Frames each side that a sample sees."""
        samples, left = 3 * HOP, HOP
        kernel = _KERNELS[min(self.size.kernels, len(_KERNELS)) - 1]
        for rate in _RATES:
            samples += 2 * left
            left //= rate
            samples += left * (kernel // 2) * (sum(_DILATIONS) + len(_DILATIONS)) + 2 * left
        return -(-(samples + 3) // HOP) + _LEAD

    def initialize(self, weights: Mapping[str, torch.Tensor], where: str) -> list[str]:
        """Take the weights of a plain HiFi-GAN and return the names of those of this network that it lacks.

        The network then computes what HiFi-GAN does plus what the source adds; the inputs for F0 and voicing
        start at zero. HiFi-GAN reads the log-mel as it is, so :meth:`normalize_by` must not be called.

        Args:
            weights: By their names in the checkpoints of HiFi-GAN's authors.
            where: Their file, for errors.

        Raises:
            InputError: A weight is absent or of another shape, or one is left over.
        """
        state, left = self.state_dict(), dict(weights)
        lacking = []
        for name, value in state.items():
            given = left.pop(_published_name(name, self.size.kernels), None)
            if given is None and not name.startswith(("source.", "mel_")):
                raise InputError(f"{where}: has no weight for {name}; not of this generator")
            if given is None:
                lacking.append(name)
                continue
            if name.startswith("enter.") and given.ndim == 3 and given.shape[1] == MEL_BANDS:
                given = functional.pad(given, (0, 0, 0, value.shape[1] - MEL_BANDS))
            if given.shape != value.shape:
                raise InputError(f"{where}: {name} is {tuple(given.shape)}, must be {tuple(value.shape)}")
            value.copy_(given)
        if left:
            raise InputError(f"{where}: {next(iter(left))} is no weight of this generator")
        return lacking

    def forward(
        self,
        log_mel: torch.Tensor,
        f0: torch.Tensor,
        voicing: torch.Tensor,
        noise: torch.Tensor,
        start: float = 0.0,
    ) -> torch.Tensor:
        """Return the waveform (batch, n); arguments as for the small vocoder's ``forward``."""
        samples, frames = noise.shape[1], log_mel.shape[1]
        features = self.conditions(log_mel, f0, voicing)
        hidden = self.enter(functional.pad(features, (_LEAD, _LEAD), mode="replicate"))
        with torch.no_grad():
            pulses = harmonic_source(f0, voicing, samples, start)
            source = torch.stack([pulses, noise * (0.1 / NOISE_SCALE)], dim=1)
            total = HOP * (frames + 2 * _LEAD)
            source = functional.pad(source, (_OFFSET, total - _OFFSET - samples))
        for up, enter, blocks in zip(self.up, self.source, self.blocks, strict=True):
            hidden = up(functional.leaky_relu(hidden, _SLOPE))
            hidden = hidden + enter(source)[..., : hidden.shape[-1]]
            hidden = torch.stack([block(hidden) for block in blocks.children()]).mean(dim=0)
        audio: torch.Tensor = torch.tanh(self.leave(functional.leaky_relu(hidden, _SLOPE)))[:, 0]
        return audio[:, _OFFSET : _OFFSET + samples].float()


def _published_name(name: str, kernels: int) -> str:
    """Return the name that a weight has in checkpoints of HiFi-GAN's authors."""
    for ours, theirs in (("original0", "weight_g"), ("original1", "weight_v")):
        name = name.replace(f"parametrizations.weight.{ours}", theirs)
    for ours, theirs in (("enter.", "conv_pre."), ("leave.", "conv_post."), ("up.", "ups.")):
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    if name.startswith("blocks."):
        _, step, block, rest = name.split(".", 3)
        rest = rest.replace("first.", "convs1.").replace("second.", "convs2.")
        return f"resblocks.{int(step) * kernels + int(block)}.{rest}"
    return ""
