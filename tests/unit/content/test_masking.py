"""Masks hide whole strips of bands and whole stretches of frames, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the train extra")

from voxveil.content.masking import MOST_BANDS, MOST_FRAMES, hide_patches  # noqa: E402
from voxveil.seeding import stream  # noqa: E402

pytestmark = pytest.mark.torch


def spectrogram(frames: int = 150) -> torch.Tensor:
    return torch.from_numpy(stream(3, "masking").normal(size=(4, frames, 80)).astype(np.float32))


@pytest.mark.parametrize("masks", [1, 2, 5])
def test_what_is_hidden_is_a_strip_or_a_stretch(masks: int) -> None:
    mel, fill = spectrogram(), torch.full((80,), 100.0)
    hidden = hide_patches(mel, fill, masks, stream(4, masks)) == 100.0
    for row in hidden.numpy():
        bands, frames = row.all(axis=0), row.all(axis=1)
        assert (row == (bands[None] | frames[:, None])).all()
        assert bands.sum() <= masks * MOST_BANDS and frames.sum() <= masks * MOST_FRAMES
    assert 0 < float(hidden.float().mean()) < 1


def test_the_rest_and_the_input_stay() -> None:
    mel = spectrogram()
    before = mel.clone()
    masked = hide_patches(mel, mel.mean(dim=(0, 1)), 2, stream(5))
    changed = masked != mel
    assert changed.any() and not changed.all()
    assert torch.equal(mel, before)


def test_equal_draws_hide_equally() -> None:
    fill = torch.zeros(80)
    first, second = (hide_patches(spectrogram(), fill, 2, stream(6)) for _ in range(2))
    assert torch.equal(first, second)


def test_a_chunk_shorter_than_a_mask_is_taken() -> None:
    assert hide_patches(spectrogram(3), torch.zeros(80), 3, stream(7)).shape == (4, 3, 80)
