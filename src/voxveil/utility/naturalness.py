"""Predicted naturalness of released speech, and utterances that fall out of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from voxveil.audio.files import decode
from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import read_model
from voxveil.pretrained.kinds import NaturalnessJudge

__all__ = ["MOS_SPREAD", "WORD_SPREAD", "find_outliers", "naturalness_of"]

#: Deviations from the median, in robust standard deviations, from which a value is an outlier
#: (Iglewicz and Hoaglin, "How to detect and handle outliers", 1993).
_DEVIATIONS = 3.5
#: Factor from the median absolute deviation to the standard deviation of a Gaussian.
_GAUSSIAN = 1.4826
#: Smallest standard deviation of naturalness in MOS, so that equal values make no outliers of near ones.
MOS_SPREAD = 0.1
#: Smallest standard deviation of the word errors of an utterance in %: short utterances have coarse rates.
WORD_SPREAD = 15.0


def naturalness_of(item: tuple[str, str, bytes]) -> float:
    """Return the predicted MOS of one utterance (model folder, id, FLAC bytes); for worker processes."""
    folder, name, flac = item
    return _judge(folder).score(decode(flac, name).astype(np.float32), f"utterance {name}")


@lru_cache(maxsize=1)
def _judge(folder: str) -> NaturalnessJudge:
    """One per process: loading takes longer than a score."""
    judge: NaturalnessJudge = load(read_model(Path(folder), "naturalness", "transcribe.naturalness"))
    return judge


def find_outliers(values: Mapping[str, float], *, worse: str, least_spread: float) -> list[str]:
    """Return the utterances whose value is far on the bad side of the median, the worst first.

    A value is an outlier from 3.5 robust standard deviations (1.4826 times the median absolute deviation) on.

    Args:
        values: By utterance, finite.
        worse: ``lower`` or ``higher``: the bad side.
        least_spread: Smallest standard deviation that is assumed.
    """
    if not values:
        return []
    sign = {"lower": -1.0, "higher": 1.0}[worse]
    numbers = sign * np.array(list(values.values()), np.float64)
    middle = float(np.median(numbers))
    spread = max(least_spread, _GAUSSIAN * float(np.median(np.abs(numbers - middle))))
    far = {
        name: number
        for name, number in zip(values, numbers, strict=True)
        if number - middle >= _DEVIATIONS * spread
    }
    return sorted(far, key=lambda name: -far[name])
