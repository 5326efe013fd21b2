"""Dataclass fields that carry their documentation and allowed range."""

from __future__ import annotations

from dataclasses import field
from typing import Any

__all__ = ["knob", "listed", "table"]


def knob(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    one_of: tuple[str, ...] | None = None,
) -> Any:
    """Return a field for one parameter.

    Args:
        default: Its value where no overlay says otherwise.
        doc: One line for params.yaml, with the unit.
        low: Smallest allowed value.
        high: Largest allowed value.
        above: The value must be larger than this.
        one_of: The allowed words.
    """
    metadata = {"doc": doc, "low": low, "high": high, "above": above, "one_of": one_of}
    return field(default=default, metadata=metadata)


def table(doc: str) -> Any:
    """Return a field for a mapping from names to sections; empty unless an overlay fills it."""
    return field(default_factory=dict, metadata={"doc": doc})


def listed(text: str) -> tuple[str, ...]:
    """Return the names in a list that is separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
