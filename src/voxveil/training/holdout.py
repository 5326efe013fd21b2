"""Held-out speakers for validation on unseen voices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["SHARE", "hold_out"]

#: Share of the speakers that is held out.
SHARE = 1 / 8


class _Spoken(Protocol):
    @property
    def speaker(self) -> str: ...


T = TypeVar("T", bound=_Spoken)


def hold_out(utterances: Sequence[T], seed: int) -> tuple[list[T], list[T]]:
    """Split utterances by speaker into (training, held-out); the order is kept.

    Args:
        utterances: Anything with a ``speaker``; of at least two speakers.
        seed: The run's seed; the same speakers are held out by every stage.

    Raises:
        InputError: Fewer than two speakers.
    """
    speakers = sorted({utterance.speaker for utterance in utterances})
    if len(speakers) < 2:
        raise InputError(f"training needs at least 2 speakers, one to hold out; got {len(speakers)}")
    count = max(1, round(SHARE * len(speakers)))
    chosen = {speakers[i] for i in stream(seed, "held-out").permutation(len(speakers))[:count]}
    held = [utterance for utterance in utterances if utterance.speaker in chosen]
    return [utterance for utterance in utterances if utterance.speaker not in chosen], held
