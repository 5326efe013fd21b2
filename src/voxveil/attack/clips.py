"""Training clips of attackers: named audio, and speed perturbation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from voxveil.config.fields import speeds_of
from voxveil.corpus.split import Speech

__all__ = ["listed_speeds", "training_clips"]


def training_clips(speech: Speech) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the name and audio of each utterance, in order."""
    for utterance in speech:
        yield f"utterance {utterance.id}", speech.audio(utterance.id)


def listed_speeds(text: str) -> tuple[float, ...]:
    """Return the speeds that ``train_attacker.speeds`` lists.

    Raises:
        ParamsError: One is no number from 0.5 to 2, there are two alike, or 1 is not among them.
    """
    return speeds_of(text, "train_attacker.speeds")
