r"""LDA, length normalization and PLDA.

The two-covariance model (Brümmer and de Villiers, "The speaker partitioning problem", Odyssey 2010):
a vector is x = y + e, y ~ N(0, B) of the speaker and e ~ N(0, W) of the recording. In the basis in
which W is the identity and B = diag(psi) (Ioffe, "Probabilistic linear discriminant analysis", ECCV
2006), an enrolment of n vectors with mean m predicts a further vector of the same speaker as
N(n psi / (n psi + 1) m, 1 + psi / (n psi + 1)), and the score is the log of its density over that of
N(0, 1 + psi). With n = 1 on both sides it is symmetric.

LDA comes first, then length normalization (Garcia-Romero and Espy-Wilson, Interspeech 2011). Both
covariances are moment estimates; W is shrunk towards a multiple of the identity by
dimensions / (dimensions + degrees of freedom), at least 1 %, so that it can be inverted whatever the
number of recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError

__all__ = ["MINIMUM_PAIRS", "Plda", "fit_plda"]

FloatArray = NDArray[np.float64]

#: Speakers with two utterances each that a fit needs at least.
MINIMUM_PAIRS = 2
_LEAST_SHRINKAGE = 0.01


@dataclass(frozen=True)
class Plda:
    """A fitted model; it is the :class:`~voxveil.attack.backends.Backend` of the vectors it projects.

    Attributes:
        mean: (E,) mean of the training vectors.
        lda: (E, D) projection before length normalization.
        centre: (D,) mean of the normalized training vectors.
        basis: (D, D) change of basis after it.
        psi: (D,) between-speaker variances where the within-speaker ones are 1, at least 0.
    """

    mean: FloatArray
    lda: FloatArray
    centre: FloatArray
    basis: FloatArray
    psi: FloatArray

    def project(self, vectors: NDArray[Any]) -> FloatArray:
        """Map (n, E) raw vectors to the (n, D) that :meth:`matrix` compares."""
        normalized = _length_normalized((vectors.astype(np.float64) - self.mean) @ self.lda)
        projected: FloatArray = (normalized - self.centre) @ self.basis
        return projected

    def matrix(self, inputs: NDArray[Any], references: Sequence[NDArray[Any]]) -> FloatArray:
        """Return the (I, R) log likelihood ratios of projected vectors, in nat."""
        rows = inputs.astype(np.float64)
        counts = np.array([len(vectors) for vectors in references], dtype=np.float64)[:, None]
        means = np.stack([vectors.astype(np.float64).mean(axis=0) for vectors in references])
        gain = counts * self.psi / (counts * self.psi + 1.0)
        variance = 1.0 + self.psi / (counts * self.psi + 1.0)
        expected = gain * means
        # sum over d of (x - a)^2 / v, written out so that no (I, R, D) array is needed.
        distance = (
            rows**2 @ (1.0 / variance).T
            - 2.0 * rows @ (expected / variance).T
            + (expected**2 / variance).sum(axis=1)
        )
        alone = rows**2 @ (1.0 / (1.0 + self.psi)) + np.log(1.0 + self.psi).sum()
        scores: FloatArray = 0.5 * (alone[:, None] - distance - np.log(variance).sum(axis=1))
        return scores

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays to store."""
        return {f"plda_{name}": array for name, array in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], name: str) -> Plda:
        """Rebuild the model from the arrays of :meth:`to_arrays`; ``name`` is the file in errors."""
        model = cls(*(arrays[f"plda_{field}"] for field in cls.__dataclass_fields__))
        size, dimensions = model.lda.shape if model.lda.ndim == 2 else (-1, -1)
        shapes = [model.mean.shape, model.centre.shape, model.basis.shape, model.psi.shape]
        if shapes != [(size,), (dimensions,), (dimensions, dimensions), (dimensions,)]:
            raise InputError(f"{name}: the arrays of its PLDA do not fit together")
        return model


def fit_plda(vectors: NDArray[Any], speakers: Sequence[str], dimensions: int) -> Plda:
    """Fit LDA, length normalization and PLDA to labelled vectors.

    Args:
        vectors: (U, E) finite vectors.
        speakers: Speaker of each.
        dimensions: Dimensions D that LDA keeps; at most E and speakers - 1 are.

    Raises:
        InputError: Fewer than :data:`MINIMUM_PAIRS` speakers have two utterances: nothing would tell how
            recordings of one speaker differ.
    """
    names, labels = np.unique(np.asarray(speakers), return_inverse=True)
    counts = np.bincount(labels)
    pairs = int((counts >= 2).sum())
    if pairs < MINIMUM_PAIRS:
        raise InputError(
            f"PLDA: {pairs} of {len(names)} speakers have 2 utterances or more; it needs at least"
            f" {MINIMUM_PAIRS} speakers with at least 2 utterances each"
        )
    rows = np.asarray(vectors, dtype=np.float64)
    mean = rows.mean(axis=0)
    lda, _ = _discriminants(rows - mean, labels)
    lda = lda[:, : min(dimensions, len(names) - 1)]
    normalized = _length_normalized((rows - mean) @ lda)
    centre = normalized.mean(axis=0)
    basis, psi = _discriminants(normalized - centre, labels)
    return Plda(mean, lda, centre, basis, psi)


def _length_normalized(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: FloatArray = rows * np.sqrt(rows.shape[1]) / np.maximum(norms, 1e-12)
    return scaled


def _discriminants(rows: FloatArray, labels: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return the basis in which W is the identity and B diagonal, and the diagonal, largest first."""
    from scipy.linalg import eigh

    size = rows.shape[1]
    counts = np.bincount(labels).astype(np.float64)
    sums = np.zeros((len(counts), size))
    np.add.at(sums, labels, rows)
    means = sums / counts[:, None]
    residual = rows - means[labels]
    freedom = len(rows) - len(counts)
    within = residual.T @ residual / freedom
    shrinkage = max(_LEAST_SHRINKAGE, size / (size + freedom))
    # A floor for vectors that hardly differ; anything smaller is rounding.
    level = max(float(np.trace(within)) / size, 1e-9 * max(float((rows**2).mean()), 1e-12))
    within = (1.0 - shrinkage) * within + shrinkage * level * np.eye(size)
    deviations = means - means.mean(axis=0)
    between = deviations.T @ deviations / (len(counts) - 1) - within * float((1.0 / counts).mean())
    values, basis = eigh(between, within)
    return basis[:, ::-1], np.maximum(values[::-1], 0.0)
