"""Losses of the vocoders: the multi-resolution STFT loss, and HiFi-GAN's discriminators with theirs.

Yamamoto, Song and Kim, "Parallel WaveGAN", ICASSP 2020, equations 3 to 6: spectral convergence
plus the mean absolute difference of log magnitudes, averaged over resolutions. Kong, Kim and Bae,
"HiFi-GAN", NeurIPS 2020: discriminators of periods and of scales.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from voxveil.audio.mel import log_mel
from voxveil.training.ranks import joint_mean, joint_norm

__all__ = ["RESOLUTIONS", "Discriminators", "adversarial_losses", "stft_loss"]

#: (FFT size, hop, window) in samples.
RESOLUTIONS = ((512, 100, 320), (1024, 200, 640), (256, 50, 120))
_FLOOR = 1e-4

_PERIODS = (2, 3, 5, 7, 11)
_SCALES = 3
_SLOPE = 0.1
#: Weights of feature matching and of the mel distance in the generator's loss.
_FEATURES, _MEL = 2.0, 45.0

#: Score and the features before it, of each discriminator.
Judged = list[tuple[torch.Tensor, list[torch.Tensor]]]


def stft_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss, a scalar.

    Args:
        output: (batch, samples) waveform, carries the gradient.
        target: (batch, samples) waveform it should sound like.
    """
    losses = []
    for size, hop, window in RESOLUTIONS:
        got, wanted = _magnitude(output, size, hop, window), _magnitude(target, size, hop, window)
        missed, whole = (
            joint_norm(torch.linalg.vector_norm(spectrum)) for spectrum in (wanted - got, wanted)
        )
        magnitude = joint_mean((torch.log(wanted) - torch.log(got)).abs().mean(), len(output))
        losses.append(missed / whole.clamp_min(1e-3) + magnitude)
    return torch.stack(losses).mean()


def _magnitude(audio: torch.Tensor, size: int, hop: int, window: int) -> torch.Tensor:
    shape = torch.hann_window(window, device=audio.device)
    spectrum = torch.stft(audio, size, hop, window, shape, pad_mode="constant", return_complex=True)
    # Not abs(): its gradient at 0 is undefined.
    return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + _FLOOR**2)


class _Chain(nn.Module):
    """Convolutions whose every output counts as a feature."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, audio: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        features, hidden = [], audio
        for layer in self.layers[:-1]:
            hidden = functional.leaky_relu(layer(hidden), _SLOPE)
            features.append(hidden)
        score = self.layers[-1](hidden)
        return score, [*features, score]


def _of_period(width: int) -> _Chain:
    sizes = [1, width, 4 * width, 16 * width, 32 * width, 32 * width]
    strides = [3, 3, 3, 3, 1]
    convolutions = [
        weight_norm(nn.Conv2d(a, b, (5, 1), (stride, 1), padding=(2, 0)))
        for a, b, stride in zip(sizes[:-1], sizes[1:], strides, strict=True)
    ]
    return _Chain([*convolutions, weight_norm(nn.Conv2d(sizes[-1], 1, (3, 1), padding=(1, 0)))])


def _of_scale(width: int) -> _Chain:
    sizes = [1, 4 * width, 4 * width, 8 * width, 16 * width, 32 * width, 32 * width]
    plan = [(15, 1, 1), (41, 2, 4), (41, 2, 16), (41, 4, 16), (41, 4, 16), (5, 1, 1)]
    convolutions = [
        weight_norm(nn.Conv1d(a, b, kernel, stride, groups=min(groups, width), padding=kernel // 2))
        for a, b, (kernel, stride, groups) in zip(sizes[:-1], sizes[1:], plan, strict=True)
    ]
    return _Chain([*convolutions, weight_norm(nn.Conv1d(sizes[-1], 1, 3, padding=1))])


class Discriminators(nn.Module):
    """All period and scale discriminators.

    Args:
        width: Channels of the first layer of a period, a multiple of 4: 32 for HiFi-GAN.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.periods = nn.ModuleList(_of_period(width) for _ in _PERIODS)
        self.scales = nn.ModuleList(_of_scale(width) for _ in range(_SCALES))

    def forward(self, audio: torch.Tensor) -> Judged:
        """Return score and features of each, of audio (batch, n)."""
        judged: Judged = []
        for period, chain in zip(_PERIODS, self.periods, strict=True):
            whole = functional.pad(audio, (0, -audio.shape[1] % period))
            judged.append(chain(whole.reshape(len(whole), 1, -1, period)))
        scaled = audio[:, None]
        for chain in self.scales:
            judged.append(chain(scaled))
            scaled = functional.avg_pool1d(scaled, 4, 2, padding=2)
        return judged


def adversarial_losses(
    judges: Discriminators, generated: torch.Tensor, real: torch.Tensor
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return one loss whose gradient trains the generator and the discriminators, each by its own part.

    The generator is judged with constant copies of the discriminators' weights, the discriminators see the
    generator's output as a constant, so neither part has a gradient for the other.

    Args:
        judges: The discriminators.
        generated: (batch, n) of the generator, with its gradient.
        real: (batch, n).

    Returns:
        (scalar loss, its parts for the curve).
    """
    of_real, of_generated = judges(real), judges(generated.detach())
    discrimination = sum(
        (1 - a).square().mean() + b.square().mean()
        for (a, _), (b, _) in zip(of_real, of_generated, strict=True)
    )
    fixed = {name: value.detach() for name, value in judges.named_parameters()}
    judged: Judged = functional_call(judges, fixed, (generated,))
    adversarial = sum((1 - score).square().mean() for score, _ in judged)
    matching = sum(
        (a.detach() - b).abs().mean()
        for (_, wanted), (_, got) in zip(of_real, judged, strict=True)
        for a, b in zip(wanted, got, strict=True)
    )
    mel = (log_mel(generated.float()) - log_mel(real.float())).abs().mean()
    total = discrimination + adversarial + _FEATURES * matching + _MEL * mel
    parts = {"mel": mel, "adversarial": adversarial, "discrimination": discrimination}
    means = {name: joint_mean(torch.as_tensor(part).detach(), len(generated)) for name, part in parts.items()}
    return joint_mean(torch.as_tensor(total), len(generated)), {
        name: float(part) for name, part in means.items()
    }
