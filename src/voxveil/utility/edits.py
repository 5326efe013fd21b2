"""Edit distance between token sequences (substitutions, deletions, insertions), and error rates of a corpus.

The error rate of a corpus is all errors over all reference tokens, with an interval over speakers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.metrics.intervals import draw_speakers, interval
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["Edits", "ErrorRate", "count_edits", "error_rate", "total"]


@dataclass(frozen=True)
class Edits:
    """Errors of a hypothesis against a reference; they add over utterances.

    Attributes:
        substitutions: Reference tokens heard as another.
        deletions: Reference tokens not heard.
        insertions: Tokens heard that are not in the reference.
        reference: Tokens of the reference.
    """

    substitutions: int
    deletions: int
    insertions: int
    reference: int

    @property
    def errors(self) -> int:
        """All errors: the edit distance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors in % of the reference, above 100 where much is inserted; None without any reference."""
        return 100.0 * self.errors / self.reference if self.reference else None

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


def count_edits(reference: Sequence[str], hypothesis: Sequence[str]) -> Edits:
    """Return the errors of a cheapest alignment; each error costs 1.

    Where several alignments are cheapest, the one is counted that, read from the end, prefers a
    match or substitution, then a deletion, then an insertion. Their sum is the same for all.

    Args:
        reference: Tokens, maybe none: every hypothesis token is then an insertion.
        hypothesis: Tokens, maybe none: every reference token is then a deletion.
    """
    cost = _costs(reference, hypothesis)
    row, column = len(reference), len(hypothesis)
    substitutions = deletions = insertions = 0
    while row or column:
        here = cost[row, column]
        same = row and column and reference[row - 1] == hypothesis[column - 1]
        if row and column and here == cost[row - 1, column - 1] + (not same):
            substitutions += not same
            row, column = row - 1, column - 1
        elif row and here == cost[row - 1, column] + 1:
            deletions, row = deletions + 1, row - 1
        else:
            insertions, column = insertions + 1, column - 1
    return Edits(int(substitutions), deletions, insertions, len(reference))


def total(edits: Iterable[Edits]) -> Edits:
    """Return the sum over utterances; nothing is skipped."""
    rows = [(e.substitutions, e.deletions, e.insertions, e.reference) for e in edits]
    return Edits(*(sum(column) for column in zip(*rows, strict=True))) if rows else Edits(0, 0, 0, 0)


def _costs(reference: Sequence[str], hypothesis: Sequence[str]) -> NDArray[np.int64]:
    """Return (n+1, m+1) edit distances of all prefixes, a row at a time."""
    ids: dict[str, int] = {}
    codes = np.array([ids.setdefault(token, len(ids)) for token in hypothesis], np.int64)
    columns = np.arange(len(hypothesis) + 1)
    cost = np.empty((len(reference) + 1, len(hypothesis) + 1), np.int64)
    cost[0] = columns
    for row, token in enumerate(reference, 1):
        best = cost[row - 1] + 1
        best[1:] = np.minimum(best[1:], cost[row - 1, :-1] + (codes != ids.get(token, -1)))
        # Insertions run along the row: min over k <= j of best[k] + (j - k).
        cost[row] = np.minimum.accumulate(best - columns) + columns
    return cost


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
            **{name: getattr(self, name) for name in ("utterances", "speakers", "replicates")},
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
