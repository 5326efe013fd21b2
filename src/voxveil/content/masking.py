"""Bands and frames hidden in training, so that the network learns from more than the clearest cues.

Park et al., "SpecAugment: a simple data augmentation method for automatic speech recognition",
Interspeech 2019: here on chunks of 1 to 2 s of log-mel, without time warping (the labels stay).
"""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["MOST_BANDS", "MOST_FRAMES", "hide_patches"]

#: Widest strip of bands that one mask hides, of 80.
MOST_BANDS = 20
#: Longest stretch that one mask hides, in 10 ms frames: about a phone or two.
MOST_FRAMES = 20


def hide_patches(
    mel: torch.Tensor, fill: torch.Tensor, masks: int, draw: np.random.Generator
) -> torch.Tensor:
    """Return the spectrogram with strips of bands and stretches of frames set to the mean.

    Args:
        mel: (batch, K, bands) log-mel; left as it is.
        fill: (bands,) what is put in place of what is hidden, the mean of each band.
        masks: Strips of bands, and as many stretches of frames, in each row. Widths are uniform from 0 to
            ``MOST_BANDS`` and ``MOST_FRAMES``, or what there is; places are uniform.
        draw: Where widths and places come from.

    Returns:
        (batch, K, bands).
    """
    batch, frames, bands = mel.shape
    keep = torch.ones(batch, frames, bands, dtype=torch.bool)
    for row in range(batch):
        for _ in range(masks):
            width = int(draw.integers(0, min(MOST_BANDS, bands) + 1))
            low = int(draw.integers(0, bands - width + 1))
            keep[row, :, low : low + width] = False
            length = int(draw.integers(0, min(MOST_FRAMES, frames) + 1))
            first = int(draw.integers(0, frames - length + 1))
            keep[row, first : first + length] = False
    return torch.where(keep.to(mel.device), mel, fill)
