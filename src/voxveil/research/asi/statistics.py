"""Speaker identification by utterance statistics: Gaussian classes with a shared covariance.

Where each speaker has a handful of utterances a network learns them by heart, and its failure on others
passes for privacy. Means and deviations with a shrunk covariance (linear discriminant analysis; Ledoit and
Wolf 2004) need little data, and on features without noise name far more speakers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["StatisticsClassifier", "pitch_statistics", "utterance_statistics"]

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
#: Share of voiced frames from which on a group of them counts as voiced.
_VOICED = 0.5
#: A statistic that varies less, relative to the one that varies most, is left out.
_SMALLEST_SD = 1e-9


def utterance_statistics(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return (2 D,) mean and standard deviation over the frames.

    Args:
        features: (K, D), K >= 1.
    """
    value = np.asarray(features, np.float64)
    return np.concatenate([value.mean(axis=0), value.std(axis=0)])


def pitch_statistics(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return (8,) mean, deviation and five quantiles of voiced pitch, and the share of voiced frames.

    Args:
        features: (K, 2) pitch and voicing, the result of
            :func:`voxveil.research.asi.identification.pitch_features`.
    """
    value = np.asarray(features, np.float64)
    pitch, voicing = value[:, 0], value[:, 1]
    voiced = pitch[voicing >= _VOICED]
    if not len(voiced):
        voiced = pitch
    return np.array([voiced.mean(), voiced.std(), *np.quantile(voiced, _QUANTILES), voicing.mean()])


class StatisticsClassifier:
    """Classifies by Mahalanobis distance to the class means, with the within-class covariance.

    Args:
        vectors: (n, D) statistics of training utterances, every class among them.
        labels: (n,) class of each, from 0 on.
    """

    def __init__(self, vectors: NDArray[np.float64], labels: Sequence[int]) -> None:
        from sklearn.covariance import LedoitWolf

        classes = np.asarray(labels)
        sd = vectors.std(axis=0)
        self._kept = sd > _SMALLEST_SD * max(float(sd.max()), 1e-300)
        self._sd = np.where(self._kept, sd, 1.0)
        scaled = self._scaled(vectors)
        self._means = np.stack([scaled[classes == k].mean(axis=0) for k in range(int(classes.max()) + 1)])
        within = LedoitWolf(assume_centered=True).fit(scaled - self._means[classes])
        self._precision = np.asarray(within.precision_)

    def distances(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n, S) squared Mahalanobis distances of (n, D) statistics to the class means."""
        scaled = self._scaled(vectors)
        moved, means = scaled @ self._precision, self._means @ self._precision
        squares = (moved * scaled).sum(axis=1)[:, None] + (means * self._means).sum(axis=1)[None, :]
        return np.asarray(squares - 2.0 * moved @ self._means.T)

    def _scaled(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((vectors / self._sd)[:, self._kept])
