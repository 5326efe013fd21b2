"""Dataclass fields that carry their documentation and allowed range."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from voxveil.runtime.errors import ParamsError

__all__ = ["Written", "gpus", "knob", "listed", "speeds_of", "table"]

#: When a composed params.yaml holds a knob: where it ``differs`` from its default, ``usually`` (at its
#: default too, since it is often changed), or ``always``: dvc.yaml needs it, a file without it is refused.
Written = Literal["differs", "usually", "always"]


def knob(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    one_of: tuple[str, ...] | None = None,
    some_of: tuple[str, ...] | None = None,
    written: Written = "differs",
) -> Any:
    """Return a field for one parameter.

    Args:
        default: Its value where neither an overlay nor params.yaml says otherwise.
        doc: One line for params.yaml, with the unit.
        low: Smallest allowed value.
        high: Largest allowed value.
        above: The value must be larger than this.
        one_of: The allowed words.
        some_of: The allowed words of a list by commas, each at most once, at least one.
        written: When a composed params.yaml holds it.
    """
    limits = {"low": low, "high": high, "above": above, "one_of": one_of, "some_of": some_of}
    return field(default=default, metadata={"doc": doc, **limits, "written": written})


def gpus() -> Any:
    """Return the field for the number of GPUs of a training stage."""
    doc = "GPUs of one machine, a process each, that share every training step"
    return knob(1, doc, low=1, high=8)


def table(doc: str) -> Any:
    """Return a field for a mapping from names to sections; empty unless an overlay fills it."""
    return field(default_factory=dict, metadata={"doc": doc})


def listed(text: str) -> tuple[str, ...]:
    """Return the names in a list that is separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def speeds_of(text: str, path: str) -> tuple[float, ...]:
    """Return the playing speeds that a parameter lists.

    Args:
        text: Numbers, separated by commas.
        path: Dotted path of the parameter, for errors.

    Raises:
        ParamsError: One is no number from 0.5 to 2, there are two alike, or 1 is not among them.
    """
    words = listed(text)
    try:
        speeds = tuple(float(word) for word in words)
    except ValueError:
        speeds = ()
    if not speeds or any(not 0.5 <= speed <= 2.0 for speed in speeds):
        raise ParamsError(f"{path}: must be numbers from 0.5 to 2 by commas, got {text!r}")
    if len(set(speeds)) < len(speeds) or 1.0 not in speeds:
        raise ParamsError(f"{path}: must hold 1 and nothing twice, got {text!r}")
    return speeds
