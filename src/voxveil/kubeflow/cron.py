"""Cron expressions as Kubeflow reads them: six fields, seconds first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from voxveil.runtime.errors import InputError

__all__ = ["check_cron"]

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PART = re.compile(r"(?P<first>\*|\?|[0-9A-Za-z]+)(?:-(?P<last>[0-9A-Za-z]+))?(?:/(?P<step>[0-9]+))?\Z")


@dataclass(frozen=True)
class _Field:
    """One field: what it counts, its range, and names that stand for numbers."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str, expression: str) -> int:
        upper = text.upper()
        value = self.low + self.names.index(upper) if upper in self.names else None
        if value is None and text.isdigit():
            value = int(text)
        if value is None or not self.low <= value <= self.high:
            also = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
            raise InputError(
                f"--cron {expression!r}: {self.name} must be {self.low}-{self.high}{also}, got {text!r}"
            )
        return value


_FIELDS = (
    _Field("seconds", 0, 59),
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


def check_cron(expression: str) -> str:
    """Return the expression with single blanks between its fields.

    Times are those of the cluster's scheduler (UTC unless it was set otherwise).

    Raises:
        InputError: Not six fields, a field out of its range, or a start every few seconds.
    """
    words = expression.split()
    if len(words) != len(_FIELDS):
        hint = f"; with seconds first: '0 {' '.join(words)}'" if len(words) == 5 else ""
        raise InputError(
            f"--cron {expression!r}: must have 6 fields (second minute hour day month weekday), got"
            f" {len(words)}{hint}"
        )
    for field, word in zip(_FIELDS, words, strict=True):
        for part in word.split(","):
            _check_part(field, part, expression)
    if not words[0].isdigit():
        raise InputError(
            f"--cron {expression!r}: seconds must be one number, or runs pile up; got {words[0]!r}"
        )
    return " ".join(words)


def _check_part(field: _Field, part: str, expression: str) -> None:
    match = _PART.match(part)
    if match is None:
        raise InputError(f"--cron {expression!r}: {field.name} cannot be read: {part!r}")
    first, last, step = match.group("first", "last", "step")
    if step is not None and int(step) == 0:
        raise InputError(f"--cron {expression!r}: {field.name} has a step of 0")
    if first in ("*", "?"):
        if first == "?" and not field.name.startswith("day"):
            raise InputError(f"--cron {expression!r}: {field.name} cannot be '?'")
        if last is not None:
            raise InputError(f"--cron {expression!r}: {field.name} cannot be read: {part!r}")
        return
    low = field.number(first, expression)
    if last is not None and field.number(last, expression) < low:
        raise InputError(f"--cron {expression!r}: {field.name} runs backwards: {part!r}")
