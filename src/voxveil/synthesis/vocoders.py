"""Vocoders by name, with one interface: log-mel, F0, voicing and noise to a waveform."""

from __future__ import annotations

from pathlib import Path

from voxveil.config.networks import TrainVocoderParams
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.synthesis import hifigan, nsf, vocoder
from voxveil.synthesis.hifigan import HifiGan, HifiGanSize
from voxveil.synthesis.nsf import NsfSize, NsfVocoder
from voxveil.synthesis.vocoder import Vocoder, VocoderSize

__all__ = ["AnyVocoder", "build_vocoder", "load_vocoder"]

#: What every vocoder is: ``reach``, ``normalize_by``, ``describe`` and ``forward`` of :class:`Vocoder`.
AnyVocoder = Vocoder | NsfVocoder | HifiGan


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
    if kind == nsf.KIND:
        return NsfVocoder.load(folder)
    if kind == hifigan.KIND:
        return HifiGan.load(folder)
    if kind != vocoder.KIND:
        known = ", ".join((vocoder.KIND, nsf.KIND, hifigan.KIND))
        raise InputError(f"{path}: not a vocoder; must be of kind {known}, got {kind!r}")
    return Vocoder.load(folder)
