"""Seeded random streams for everything that is public.

A stream is keyed by (seed, item...): results do not depend on order, batch size or
the number of workers. Noise on private values never comes from here; see
:mod:`voxveil.privacy.noise`.
"""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["stream", "stream_seed"]


def stream_seed(seed: int, *keys: str | int) -> int:
    """Return a 128-bit seed for the stream named by ``keys``.

    Args:
        seed: The run's seed (a parameter).
        *keys: What the stream is for, e.g. ``"train_pitch", "dp", "batch", 17``.
    """
    text = "\x1f".join([str(int(seed)), *(str(key) for key in keys)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def stream(seed: int, *keys: str | int) -> np.random.Generator:
    """Return an independent generator for the stream named by ``keys``."""
    return np.random.default_rng(stream_seed(seed, *keys))
