"""Noise sources: the operating system for private values, a seeded stream for public ones."""

from __future__ import annotations

import os
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import PrivacyError
from voxveil.runtime.seeding import stream

__all__ = ["NoiseSource", "PublicNoise", "SystemNoise", "laplace_from_words"]

Array = NDArray[np.float64]


class SystemNoise:
    """Randomness for private values: every word from the operating system's CSPRNG, no seed, no state.

    It gives words only. What becomes of them is exact (:mod:`voxveil.privacy.discrete`); there is
    no way to add floating-point noise to a private value.
    """

    secret = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return (count,) uniform 64-bit words, writable."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype="<u8").astype(np.uint64, copy=False)


class PublicNoise:
    """Noise for public speech: a seeded stream of its own, keyed by item.

    For training and for the attacker's training set; it protects nobody.

    Args:
        seed: The run's seed.
        *keys: What the noise is for and which item, e.g. ``"anonymize", "anon_dp", utterance, "pitch"``.
    """

    secret = False

    def __init__(self, seed: int, *keys: str | int) -> None:
        self._generator = stream(seed, "noise", *keys)

    def laplace(self, shape: tuple[int, ...], scale: float) -> Array:
        """Return i.i.d. centred Laplace noise, float64, of the given scale."""
        count = int(np.prod(shape, dtype=np.int64))
        return laplace_from_words(self.words(count), scale).reshape(shape)

    def normal(self, shape: tuple[int, ...], scale: float) -> Array:
        """Return i.i.d. centred Gaussian noise, float64, of the given standard deviation."""
        return self._generator.standard_normal(shape) * scale

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return (count,) uniform 64-bit words of the seeded stream."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


#: What a mechanism may be given.
NoiseSource: TypeAlias = SystemNoise | PublicNoise


def laplace_from_words(words: NDArray[np.uint64], scale: float) -> Array:
    """Turn 64-bit words into floating-point Laplace noise: one bit of sign, 53 of an exponential.

    Fast, and not fit for private values: its low bits tell what it was added to.

    Args:
        words: (n,) uniform 64-bit words.
        scale: Scale b of the density exp(-|x|/b) / 2b, above 0.

    Returns:
        (n,) float64, always finite and never 0: the uniform lies in [2^-54, 1 - 2^-53].
    """
    if not np.isfinite(scale) or scale <= 0:
        raise PrivacyError(f"the scale of Laplace noise must be above 0 and finite, got {scale}")
    sign = np.where(words & np.uint64(1), 1.0, -1.0)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return sign * (-np.log(np.minimum(uniform, 1.0 - 2.0**-53))) * scale
