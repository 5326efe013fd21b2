"""Systems against epsilon: a panel for each metric, a line for each family of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxveil.metrics.plots import CHANCE, new_figure
from voxveil.research.papers.figures.labels import name_at_the_right

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from voxveil.research.papers.families import System

__all__ = ["Line", "against_epsilon_figure"]

_STYLES = {"Anon+DP_Pitch": ("o", "--"), "Anon+DP_BN": ("s", "-."), "Anon+DP": ("D", "-")}
_FLAT = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (6, 2)))

#: A system in a panel: epsilon, value and interval.
Point = tuple[float, float, tuple[float, float] | None]


@dataclass(frozen=True)
class Line:
    """Values of one panel.

    Attributes:
        title: Of the panel.
        unit: Of its values; empty for shares.
        values: By system; None where undefined.
        intervals: By system, of 95 %; None or left out where there is none.
        chance: Where nothing is recognized, if the metric has such a place.
    """

    title: str
    unit: str
    values: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float] | None]
    chance: float | None


def against_epsilon_figure(systems: Sequence[System], lines: Sequence[Line]) -> Figure:
    """Draw metrics against the epsilon of a stream with noise; what has none is a horizontal line.

    Systems of one family and one epsilon are a marker each, and the line passes through their mean. A metric
    that no system has gets no panel.
    """
    shown = [line for line in lines if any(value is not None for value in line.values.values())]
    figure, axes = new_figure(1, max(1, len(shown)), width=5.6, height=4.2)
    for axis, line in zip(axes, shown, strict=False):
        drawn = {family: _points(systems, line, family) for family in _STYLES}
        present = [family for family, points in drawn.items() if points]
        for position, family in enumerate(present):
            # Side by side, for intervals of one epsilon would hide each other.
            _draw_family(axis, family, drawn[family], 1.06 ** (position - (len(present) - 1) / 2))
        flat = [s for s in systems if s.family not in _STYLES and line.values[s.name] is not None]
        for position, system in enumerate(flat):
            style = _FLAT[position % len(_FLAT)]
            axis.axhline(float(line.values[system.name] or 0.0), color="0.5", linewidth=0.9, linestyle=style)
        if line.chance is not None:
            axis.axhline(line.chance, label="nothing is recognized", **CHANCE)
        axis.set_xscale("log")
        axis.set_xlabel("epsilon of each stream with noise (nat)")
        axis.set_ylabel(f"{line.title} ({line.unit})" if line.unit else line.title)
        name_at_the_right(axis, [(s.name, float(line.values[s.name] or 0.0)) for s in flat])
    # One entry for what every panel has.
    named = {h.get_label(): h for axis in axes for h in axis.get_legend_handles_labels()[0]}
    if named:
        figure.legend(handles=named.values(), loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure


def _points(systems: Sequence[System], line: Line, family: str) -> list[Point]:
    """Return epsilon, value and interval of every system of a family that has a value."""
    return [
        (system.epsilon, value, line.intervals.get(system.name))
        for system in systems
        if system.family == family
        and np.isfinite(system.epsilon)
        and (value := line.values[system.name]) is not None
    ]


def _draw_family(axis: Axes, family: str, found: Sequence[Point], aside: float) -> None:
    marker, dash = _STYLES[family]
    across = sorted({epsilon for epsilon, _, _ in found})
    means = [np.mean([value for epsilon, value, _ in found if epsilon == x]) for x in across]
    axis.plot([x * aside for x in across], means, linestyle=dash, marker="", color="0.0", linewidth=1)
    for epsilon, value, interval in found:
        if interval is not None:
            axis.vlines(epsilon * aside, *interval, color="0.6", linewidth=1)
        axis.plot(epsilon * aside, value, marker=marker, color="0.0", markerfacecolor="1.0")
    axis.plot([], [], linestyle=dash, marker=marker, color="0.0", markerfacecolor="1.0", label=family)
