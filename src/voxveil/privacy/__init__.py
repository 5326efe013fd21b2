"""Mechanisms, released values, losses and the ledger.

A private value reaches a synthesizer only as :class:`Released`, which only a mechanism makes.
"""

from voxveil.privacy.loss import INFINITE, Loss, compose, utterance_loss
from voxveil.privacy.mechanisms import (
    Identity,
    LaplaceCube,
    LaplaceSimplex,
    Mechanism,
    content_mechanism,
    norm1,
    pitch_mechanism,
)
from voxveil.privacy.noise import NoiseSource, PublicNoise, SystemNoise
from voxveil.privacy.released import Released, require_released

__all__ = [
    "INFINITE",
    "Identity",
    "LaplaceCube",
    "LaplaceSimplex",
    "Loss",
    "Mechanism",
    "NoiseSource",
    "PublicNoise",
    "Released",
    "SystemNoise",
    "compose",
    "content_mechanism",
    "norm1",
    "pitch_mechanism",
    "require_released",
    "utterance_loss",
]
