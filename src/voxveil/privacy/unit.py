"""Normalization of vectors to norm 1; a zero vector becomes a fixed unit vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["norm1", "norm2"]

Array = NDArray[Any]


def norm1(vectors: Array) -> Array:
    """Scale each row to L1 norm 1; a zero row becomes the fixed first unit vector.

    Args:
        vectors: (K, M) finite.
    """
    scaled, largest = _by_largest(vectors)
    return _on_sphere(scaled, largest, np.abs(scaled).sum(axis=-1, keepdims=True))


def norm2(vectors: Array) -> Array:
    """Scale each row to L2 norm 1; a zero row becomes the fixed first unit vector.

    Args:
        vectors: (K, M) finite.
    """
    scaled, largest = _by_largest(vectors)
    return _on_sphere(scaled, largest, np.sqrt(np.square(scaled).sum(axis=-1, keepdims=True)))


def _by_largest(vectors: Array) -> tuple[Array, Array]:
    # Dividing by the largest entry first keeps subnormal rows on the sphere.
    vectors = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    return vectors / np.where(largest > 0, largest, 1.0), largest


def _on_sphere(scaled: Array, largest: Array, norms: Array) -> Array:
    unit = np.zeros_like(scaled)
    unit[..., 0] = 1.0
    return np.where(largest > 0, scaled / np.where(norms > 0, norms, 1.0), unit)
