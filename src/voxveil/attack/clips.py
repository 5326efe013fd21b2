"""What attackers train on: named clips, and the speeds they are played at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from voxveil.config.fields import listed
from voxveil.corpus.split import Speech
from voxveil.errors import ParamsError

__all__ = ["listed_speeds", "training_clips"]


def training_clips(speech: Speech) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield what to call each utterance and its audio, in order."""
    for utterance in speech:
        yield f"utterance {utterance.id}", speech.audio(utterance.id)


def listed_speeds(text: str) -> tuple[float, ...]:
    """Return the speeds that ``train_attacker.speeds`` lists.

    Raises:
        ParamsError: One is no number from 0.5 to 2, there are two alike, or 1 is not among them.
    """
    words = listed(text)
    try:
        speeds = tuple(float(word) for word in words)
    except ValueError:
        speeds = ()
    if not speeds or any(not 0.5 <= speed <= 2.0 for speed in speeds):
        raise ParamsError(f"train_attacker.speeds: must be numbers from 0.5 to 2 by commas, got {text!r}")
    if len(set(speeds)) < len(speeds) or 1.0 not in speeds:
        raise ParamsError(f"train_attacker.speeds: must hold 1 and nothing twice, got {text!r}")
    return speeds
