"""A small generator of HiFi-GAN without training, written as its authors' training writes one."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import leaky_relu
from torch.nn.utils.parametrizations import weight_norm

from voxveil.audio.frames import HOP

WIDTH = 16
CONFIG = {
    "resblock": "1",
    "upsample_rates": [5, 4, 4, 2],
    "upsample_kernel_sizes": [11, 8, 8, 4],
    "upsample_initial_channel": WIDTH,
    "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5]] * 3,
    "num_mels": 80,
    "hop_size": HOP,
    "sampling_rate": 16000,
}


class Residual(nn.Module):
    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convs1, self.convs2 = nn.ModuleList(), nn.ModuleList()
        for step in (1, 3, 5):
            for convs, dilation in ((self.convs1, step), (self.convs2, 1)):
                padding = (kernel - 1) * dilation // 2
                convs.append(
                    weight_norm(nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=padding))
                )

    def forward(self, x):
        for first, second in zip(self.convs1, self.convs2, strict=True):
            x = x + second(leaky_relu(first(leaky_relu(x, 0.1)), 0.1))
        return x


class Published(nn.Module):
    """The generator of the paper's authors, with slope 0.1 before the last layer as before the others."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_pre = weight_norm(nn.Conv1d(80, WIDTH, 7, padding=3))
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for step, (rate, kernel) in enumerate(zip((5, 4, 4, 2), (11, 8, 8, 4), strict=True)):
            wide, narrow = WIDTH >> step, WIDTH >> (step + 1)
            self.ups.append(
                weight_norm(nn.ConvTranspose1d(wide, narrow, kernel, rate, padding=(kernel - rate) // 2))
            )
            self.resblocks.extend(Residual(narrow, size) for size in (3, 7, 11))
        self.conv_post = weight_norm(nn.Conv1d(narrow, 1, 7, padding=3))

    def forward(self, mel):
        x = self.conv_pre(mel)
        for step, up in enumerate(self.ups):
            x = up(leaky_relu(x, 0.1))
            x = sum(block(x) for block in self.resblocks[3 * step : 3 * step + 3]) / 3
        return torch.tanh(self.conv_post(leaky_relu(x, 0.1)))


def published() -> Published:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = Published().eval()
        for name, value in network.named_parameters():
            if name.endswith("original0"):
                nn.init.constant_(value, 1.5)  # norms that keep a signal through all layers
    return network


def old_names(network: nn.Module) -> dict[str, torch.Tensor]:
    halves = {
        "parametrizations.weight.original0": "weight_g",
        "parametrizations.weight.original1": "weight_v",
    }
    state = {}
    for name, value in network.state_dict().items():
        for new, old in halves.items():
            name = name.replace(new, old)
        state[name] = value
    return state


def write_generator(folder: Path, state: object, **changes: object) -> Path:
    """Write a checkpoint and its configuration, with ``changes`` in the latter."""
    folder.mkdir(exist_ok=True)
    torch.save({"generator": state}, folder / "g_00000010")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return folder
