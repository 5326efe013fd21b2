"""Multi-resolution STFT loss between waveforms.

Yamamoto, Song and Kim, "Parallel WaveGAN", ICASSP 2020, equations 3 to 6: spectral convergence
plus the mean absolute difference of log magnitudes, averaged over resolutions.
"""

from __future__ import annotations

import torch

from voxveil.training.ranks import joint_mean, joint_norm

__all__ = ["RESOLUTIONS", "stft_loss"]

#: (FFT size, hop, window) in samples.
RESOLUTIONS = ((512, 100, 320), (1024, 200, 640), (256, 50, 120))
_FLOOR = 1e-4


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
