"""Error rate over a corpus (all errors / all reference tokens), with an interval over speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxveil.metrics.intervals import draw_speakers, interval
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.utility.edits import Edits, total

__all__ = ["ErrorRate", "error_rate"]


@dataclass(frozen=True)
class ErrorRate:
    """An error rate over a corpus with its interval.

    Attributes:
        edits: Errors of all utterances.
        ci95: 2.5 % and 97.5 % quantiles over draws of speakers, in %; None where there is none.
        reason: Why ``value`` or ``ci95`` is absent.
        utterances: Number of utterances.
        speakers: Number of speakers.
        replicates: Bootstrap replicates behind ``ci95``.
    """

    edits: Edits
    ci95: tuple[float, float] | None
    reason: str
    utterances: int
    speakers: int
    replicates: int

    @property
    def value(self) -> float | None:
        """Errors in % of all reference tokens."""
        return self.edits.rate

    def to_json(self) -> dict[str, Any]:
        """Return everything by name; ``unit`` is ``%``."""
        return {
            "value": self.value,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "unit": "%",
            "reason": self.reason,
            **self.edits.to_json(),
            "utterances": self.utterances,
            "speakers": self.speakers,
            "replicates": self.replicates,
        }


def error_rate(
    edits: Mapping[str, Edits], speakers: Mapping[str, str], *, replicates: int, seed: int
) -> ErrorRate:
    """Return the rate over a corpus: all errors over all reference tokens, nothing skipped.

    Args:
        edits: Errors by utterance.
        speakers: Speaker by utterance.
        replicates: Draws of the speakers with replacement behind the interval.
        seed: The run's seed.

    Raises:
        InputError: An utterance without a speaker.
    """
    for item in edits:
        if item not in speakers:
            raise InputError(f"utterance {item}: no speaker is known for it")
    names = sorted({speakers[item] for item in edits})
    by_speaker = [total(e for item, e in edits.items() if speakers[item] == name) for name in names]
    whole = total(edits.values())
    if whole.reference == 0:
        return ErrorRate(whole, None, "no reference has any token", len(edits), len(names), 0)
    if len(names) < 2:
        return ErrorRate(whole, None, "an interval needs at least 2 speakers", len(edits), len(names), 0)
    counts = np.array([(e.errors, e.reference) for e in by_speaker], np.float64)
    draws = draw_speakers(stream(seed, "error_rate", "bootstrap"), len(names), replicates)
    errors, reference = (draws @ counts).T
    if (reference == 0).any():
        reason = "some draws of the speakers have no reference token"
        return ErrorRate(whole, None, reason, len(edits), len(names), replicates)
    found = interval(100.0 * errors / reference)
    return ErrorRate(whole, found.bounds, found.note or "", len(edits), len(names), replicates)
