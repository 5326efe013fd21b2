"""Vocal tract length perturbation, a data augmentation.

Jaitly and Hinton, "Vocal tract length perturbation (VTLP) improves speech recognition", 2013. Here
the bands of a log-mel spectrogram are read at frequencies times a factor, one per utterance.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import MEL_BANDS
from voxveil.audio.mel import hertz_to_mel, mel_edges

__all__ = ["warp_bands"]


def warp_bands(mel: torch.Tensor, factors: NDArray[np.float64]) -> torch.Tensor:
    """Return the spectrogram with band b read at the frequency of b times a factor.

    Args:
        mel: (batch, K, 80) log-mel.
        factors: (batch,) above 0; 1 leaves a row as it is.

    Returns:
        (batch, K, 80), linear between neighbouring bands; beyond the last band, the last one.
    """
    edges = mel_edges()
    steps = hertz_to_mel(edges[1:-1] * factors[:, None]) / hertz_to_mel(edges[-1]) * (MEL_BANDS + 1)
    places = np.clip(steps - 1.0, 0, MEL_BANDS - 1)
    low = np.minimum(np.floor(places).astype(np.int64), MEL_BANDS - 2)
    share = torch.from_numpy((places - low).astype(np.float32))[:, None].to(mel.device)
    index = torch.from_numpy(low)[:, None].to(mel.device).expand(-1, mel.shape[1], -1)
    return torch.gather(mel, 2, index) * (1.0 - share) + torch.gather(mel, 2, index + 1) * share
