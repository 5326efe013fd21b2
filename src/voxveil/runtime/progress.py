"""Progress display: a live line on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Progress"]


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
