"""Clusters of public voices by affinity propagation on their cosines.

Frey and Dueck, "Clustering by passing messages between data points", Science 2007; used on
x-vectors for the choice of targets by Srivastava et al., "Design choices for x-vector based
speaker anonymization", Interspeech 2020. It finds the number of clusters itself.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import VoxveilError

__all__ = ["cluster_voices"]

_DAMPINGS = (0.5, 0.7, 0.9, 0.95)


def cluster_voices(voices: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cluster of each voice.

    Args:
        voices: (S, E) unit-norm embeddings, one per speaker.

    Returns:
        (S,) labels, numbered from 0 in order of first appearance; the same for the same input.

    Raises:
        VoxveilError: The messages do not settle at any damping.
    """
    if len(voices) < 3:
        return np.zeros(len(voices), dtype=np.int64)
    from sklearn.cluster import AffinityPropagation
    from sklearn.exceptions import ConvergenceWarning

    # Rounded, so that the last bit of a matrix product cannot move a label.
    cosines = np.round(voices @ voices.T, 6)
    for damping in _DAMPINGS:
        model = AffinityPropagation(
            damping=damping, max_iter=2000, convergence_iter=30, affinity="precomputed", random_state=0
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = model.fit_predict(cosines)
        if not any(issubclass(item.category, ConvergenceWarning) for item in caught) and labels.min() >= 0:
            return _in_order(labels)
    raise VoxveilError(
        f"affinity propagation over {len(voices)} pool speakers does not settle; "
        "train the encoder longer (train_speaker.steps) or change prepare.pool_speakers"
    )


def _in_order(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    number: dict[int, int] = {}
    return np.array([number.setdefault(int(label), len(number)) for label in labels], dtype=np.int64)
