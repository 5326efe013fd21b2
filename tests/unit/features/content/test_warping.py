"""Vocal tract perturbation of log-mel bands."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from voxveil.audio.mel import log_mel
from voxveil.features.content.train import warp_bands

pytestmark = pytest.mark.torch


def tone(hertz: float) -> torch.Tensor:
    time = torch.arange(16_000) / 16_000
    return log_mel(torch.sin(2 * torch.pi * hertz * time)[None])


def test_a_factor_of_one_changes_nothing() -> None:
    mel = torch.randn(3, 20, 80, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(warp_bands(mel, np.ones(3)), mel, atol=1e-4)


@pytest.mark.parametrize("factor", [0.85, 1.1])
def test_what_was_at_a_frequency_moves_by_the_factor(factor: float) -> None:
    warped = warp_bands(tone(1500.0), np.array([factor]))[0, 20:80].mean(dim=0)
    expected = tone(1500.0 / factor)[0, 20:80].mean(dim=0)
    assert abs(int(warped.argmax()) - int(expected.argmax())) <= 1


def test_rows_have_factors_of_their_own() -> None:
    mel = torch.randn(1, 5, 80, generator=torch.Generator().manual_seed(0)).expand(2, -1, -1)
    both = warp_bands(mel, np.array([0.9, 1.1]))
    for row, factor in enumerate((0.9, 1.1)):
        assert torch.equal(both[row], warp_bands(mel[:1], np.array([factor]))[0])
