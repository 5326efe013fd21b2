"""Differential privacy: mechanisms, released values, privacy losses, ledger and register.

A private value reaches a synthesizer only as :class:`Released`, which only a mechanism makes.
"""

from voxveil.privacy.ball import LaplaceBall
from voxveil.privacy.codes import CodeMechanism
from voxveil.privacy.ledger import Ledger, read_ledger, read_ledgers, write_ledger
from voxveil.privacy.loss import INFINITE, Loss, compose, stream_rho, utterance_loss
from voxveil.privacy.mechanisms import (
    ContentMechanism,
    Identity,
    LaplaceCube,
    LaplaceSimplex,
    Mechanism,
    PitchMechanism,
    content_mechanism,
    described_content,
    pitch_mechanism,
)
from voxveil.privacy.noise import NoiseSource, PublicNoise, SystemNoise
from voxveil.privacy.record import Entry, Release
from voxveil.privacy.register import Register, open_register
from voxveil.privacy.released import Released, require_released
from voxveil.privacy.resampled import ResampledWords
from voxveil.privacy.response import RandomizedResponse
from voxveil.privacy.sphere import GaussianSphere
from voxveil.privacy.subset import SubsetSelection
from voxveil.privacy.unit import norm1, norm2
from voxveil.privacy.words import RecognizedWords, Words, recognition_digest

__all__ = [
    "INFINITE",
    "CodeMechanism",
    "ContentMechanism",
    "Entry",
    "GaussianSphere",
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
    "RecognizedWords",
    "Register",
    "Release",
    "Released",
    "ResampledWords",
    "SubsetSelection",
    "SystemNoise",
    "Words",
    "compose",
    "content_mechanism",
    "described_content",
    "norm1",
    "norm2",
    "open_register",
    "pitch_mechanism",
    "read_ledger",
    "read_ledgers",
    "recognition_digest",
    "require_released",
    "stream_rho",
    "utterance_loss",
    "write_ledger",
]
