"""Scoring back ends: every input against every enrolment, higher = more alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Backend", "Cosine", "Euclidean", "unit_mean"]

#: Entries of an (inputs, references, E) block that are held at once.
_BLOCK_ENTRIES = 4_000_000


class Backend(Protocol):
    """Compares vectors."""

    def matrix(self, inputs: NDArray[Any], references: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Score every input against every reference.

        Args:
            inputs: (I, E) vectors.
            references: The (n, E) vectors that each reference is enrolled with, n >= 1.

        Returns:
            (I, R) scores; higher = more alike.
        """


def unit_mean(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (E,) mean of (n, E) vectors scaled to norm 1; zero where no direction is left."""
    total = vectors.astype(np.float64).sum(axis=0)
    unit: NDArray[np.float64] = total / max(float(np.linalg.norm(total)), 1e-12)
    return unit


class Cosine:
    """Cosine of unit-norm vectors with the unit-norm mean of an enrolment."""

    def matrix(self, inputs: NDArray[Any], references: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Return the (I, R) cosines; see :meth:`Backend.matrix`."""
        models = np.stack([unit_mean(vectors) for vectors in references])
        scores: NDArray[np.float64] = inputs.astype(np.float64) @ models.T
        return scores


class Euclidean:
    """Negated Euclidean distance from the mean of an enrolment."""

    def matrix(self, inputs: NDArray[Any], references: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Return the (I, R) negated distances; see :meth:`Backend.matrix`."""
        models = np.stack([vectors.astype(np.float64).mean(axis=0) for vectors in references])
        rows = inputs.astype(np.float64)
        step = max(1, _BLOCK_ENTRIES // models.size)
        blocks = [
            np.sqrt(((rows[start : start + step, None] - models[None]) ** 2).sum(axis=2))
            for start in range(0, len(rows), step)
        ]
        scores: NDArray[np.float64] = -np.concatenate(blocks)
        return scores
