"""Multi-resolution STFT loss between waveforms.

Yamamoto, Song and Kim, "Parallel WaveGAN", ICASSP 2020, equations 3 to 6: spectral convergence
plus the mean absolute difference of log magnitudes, averaged over resolutions.
"""

from __future__ import annotations

import torch

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
        convergence = torch.linalg.vector_norm(wanted - got) / torch.linalg.vector_norm(wanted).clamp_min(
            1e-3
        )
        losses.append(convergence + (torch.log(wanted) - torch.log(got)).abs().mean())
    return torch.stack(losses).mean()


def _magnitude(audio: torch.Tensor, size: int, hop: int, window: int) -> torch.Tensor:
    shape = torch.hann_window(window, device=audio.device)
    spectrum = torch.stft(audio, size, hop, window, shape, pad_mode="constant", return_complex=True)
    # Not abs(): its gradient at 0 is undefined.
    return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + _FLOOR**2)
