"""Edit distance between token sequences, with its substitutions, deletions and insertions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Edits", "count_edits", "total"]


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
        return {
            "substitutions": self.substitutions,
            "deletions": self.deletions,
            "insertions": self.insertions,
            "reference": self.reference,
        }


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
