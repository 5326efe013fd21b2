"""Text for a terminal: progress with rate and time left, and aligned columns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

__all__ = ["Progress", "align_columns"]


class Progress:
    """Counts work done, with rate and time left.

    Args:
        name: What is being done, e.g. ``train_pitch[dp]``.
        total: Number of units.
        unit: Name of a unit, e.g. ``step`` or ``utterance``.
        start: Units already done (a resumed run).
        stream: Where to write; standard error unless told.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        total: int,
        unit: str,
        *,
        start: int = 0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._start = self._done = start
        self._stream = stream or sys.stderr
        self._clock = clock
        self._begun = self._shown = clock()
        self._live = self._stream.isatty()

    def update(self, done: int, note: str = "") -> None:
        """Report that ``done`` units are finished; prints at most every 0.5 s (10 s in a log)."""
        self._done = done
        now = self._clock()
        if done < self._total and now - self._shown < (0.5 if self._live else 10.0):
            return
        self._shown = now
        elapsed = max(now - self._begun, 1e-9)
        rate = (done - self._start) / elapsed
        left = (self._total - done) / rate if rate > 0 else float("inf")
        remaining = f", {left:.0f} s left" if done < self._total and left != float("inf") else ""
        line = f"{self._name}: {done}/{self._total} {self._unit}s, {rate:.1f}/s{remaining}"
        line += f", {note}" if note else ""
        if self._live:
            end = "\n" if done >= self._total else ""
            self._stream.write(f"\r\x1b[K{line}{end}")
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()


def align_columns(rows: Sequence[Sequence[str]], *, rule: bool = False, indent: str = "") -> list[str]:
    """Return the rows of a table as lines of left-aligned columns, two blanks apart.

    Args:
        rows: Cells of each row, as many in every row; the first row may be the header.
        rule: A rule of dashes follows the first row.
        indent: Text before every line.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]] if rule and rows else rows
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in ruled
    ]
