"""Vocoders by name, with one interface: log-mel, F0, voicing and noise to a waveform; copy synthesis.

Copy synthesis vocodes an utterance's own log-mel and F0: the upper line of what synthesis costs. Nothing of
it is private: what was said, who said it and how are all handed on, so a system made of it promises nothing
(epsilon is infinite).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.mel import log_mel
from voxveil.config.networks import TrainVocoderParams
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.synthesis.hifigan import HifiGan, HifiGanSize
from voxveil.synthesis.nsf import NsfSize, NsfVocoder
from voxveil.synthesis.source import fill_unvoiced, noise_source
from voxveil.synthesis.vocoder import Vocoder, VocoderSize
from voxveil.training.loop import device

__all__ = [
    "DEFAULT_F0",
    "AnyVocoder",
    "CopySynthesis",
    "build_vocoder",
    "copy_synthesis",
    "load_vocoder",
    "tensors",
]

#: What every vocoder is: ``reach``, ``normalize_by``, ``describe`` and ``forward`` of :class:`Vocoder`.
AnyVocoder = Vocoder | NsfVocoder | HifiGan
_BY_KIND: dict[str, type[AnyVocoder]] = {vocoder.kind: vocoder for vocoder in (Vocoder, NsfVocoder, HifiGan)}

#: F0 in Hz of the (silent) pulse train where an utterance has no voiced frame.
DEFAULT_F0 = 150.0


def build_vocoder(params: TrainVocoderParams) -> AnyVocoder:
    """Return an untrained vocoder of ``params.kind``."""
    if params.kind == "nsf_gan":
        return HifiGan(HifiGanSize(params.channels))
    if params.kind == "hn_sinc":
        return NsfVocoder(
            NsfSize(params.channels, params.width, params.harmonic_blocks, params.noise_blocks, params.layers)
        )
    return Vocoder(VocoderSize(params.channels))


def load_vocoder(folder: Path) -> AnyVocoder:
    """Read a vocoder of any kind, ready to speak.

    Raises:
        InputError: Naming the file that is missing, of another kind or does not fit.
    """
    path = Path(folder) / "model.json"
    content = read_json(path)
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _BY_KIND:
        raise InputError(f"{path}: not a vocoder; must be of kind {', '.join(_BY_KIND)}, got {kind!r}")
    return _BY_KIND[kind].load(folder)


def copy_synthesis(
    vocoder: AnyVocoder, mel: NDArray[np.float32], f0: NDArray[np.float32], samples: int
) -> NDArray[np.float32]:
    """Return (n,) speech from an utterance's true log-mel and F0.

    Args:
        vocoder: In evaluation mode.
        mel: (K, 80), natural log.
        f0: (K,) Hz, 0 where unvoiced.
        samples: n, K = n // 160 + 1.
    """
    rows = (mel, fill_unvoiced(f0, DEFAULT_F0), (f0 > 0).astype(np.float32), noise_source(samples))
    inputs = tensors(*(row[None] for row in rows))
    with torch.inference_mode():
        return np.asarray(vocoder(*inputs)[0].cpu().numpy(), dtype=np.float32)


def tensors(*arrays: NDArray[np.float32]) -> list[torch.Tensor]:
    """Return arrays as tensors, on the GPU if there is one."""
    return [torch.from_numpy(np.ascontiguousarray(array)).to(device()) for array in arrays]


class CopySynthesis:
    """Speaks recordings again through a vocoder.

    Args:
        vocoder: In evaluation mode.
    """

    def __init__(self, vocoder: AnyVocoder) -> None:
        self._vocoder = vocoder

    @classmethod
    def load(cls, folder: Path) -> CopySynthesis:
        """Read the vocoder of a bundle."""
        return cls(load_vocoder(folder))

    def __call__(self, audio: NDArray[np.float32], f0: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n,) speech of (n,) speech at 16 kHz and its (K,) F0 in Hz, 0 where unvoiced."""
        with torch.inference_mode():
            mel = log_mel(torch.from_numpy(np.ascontiguousarray(audio, np.float32))[None])[0].numpy()
        return copy_synthesis(self._vocoder, mel, f0, len(audio))
