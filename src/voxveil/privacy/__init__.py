"""Mechanisms, released values, losses and the ledger.

A private value reaches a synthesizer only as :class:`Released`, which only a mechanism makes.
"""

from voxveil.privacy.ball import LaplaceBall
from voxveil.privacy.ledger import Ledger, read_ledger, read_ledgers, write_ledger
from voxveil.privacy.loss import INFINITE, Loss, compose, utterance_loss
from voxveil.privacy.mechanisms import (
    ContentMechanism,
    Identity,
    LaplaceCube,
    LaplaceSimplex,
    Mechanism,
    PitchMechanism,
    content_mechanism,
    norm1,
    pitch_mechanism,
)
from voxveil.privacy.noise import NoiseSource, PublicNoise, SystemNoise
from voxveil.privacy.record import Entry, Release
from voxveil.privacy.register import Register, open_register
from voxveil.privacy.released import Released, require_released
from voxveil.privacy.response import RandomizedResponse

__all__ = [
    "INFINITE",
    "ContentMechanism",
    "Entry",
    "Identity",
    "LaplaceBall",
    "LaplaceCube",
    "LaplaceSimplex",
    "Ledger",
    "Loss",
    "Mechanism",
    "NoiseSource",
    "PitchMechanism",
    "PublicNoise",
    "RandomizedResponse",
    "Register",
    "Release",
    "Released",
    "SystemNoise",
    "compose",
    "content_mechanism",
    "norm1",
    "open_register",
    "pitch_mechanism",
    "read_ledger",
    "read_ledgers",
    "require_released",
    "utterance_loss",
    "write_ledger",
]
