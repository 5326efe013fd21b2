"""Systems against epsilon: a panel for each metric, a line for each family of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxveil.metrics.plots import CHANCE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from voxveil.papers.systems import System

__all__ = ["Line", "against_epsilon_figure"]

_STYLES = {"Anon+DP_Pitch": ("o", "--"), "Anon+DP_BN": ("s", "-."), "Anon+DP": ("D", "-")}
_FLAT = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (6, 2)))


@dataclass(frozen=True)
class Line:
    """What a panel shows.

    Attributes:
        title: Of the panel.
        unit: Of its values; empty for shares.
        values: By system; None where undefined.
        chance: Where nothing is recognised, if the metric has such a place.
    """

    title: str
    unit: str
    values: Mapping[str, float | None]
    chance: float | None


def against_epsilon_figure(systems: Sequence[System], lines: Sequence[Line]) -> Figure:
    """Draw metrics against the epsilon of a stream with noise; what has none is a horizontal line.

    A metric that no system has gets no panel.
    """
    shown = [line for line in lines if any(value is not None for value in line.values.values())]
    figure, axes = new_figure(1, max(1, len(shown)), width=5.2, height=4.0)
    for axis, line in zip(axes, shown, strict=False):
        for family, (marker, dash) in _STYLES.items():
            points = sorted(
                (s.epsilon, value)
                for s in systems
                if s.family == family
                and np.isfinite(s.epsilon)
                and (value := line.values[s.name]) is not None
            )
            if points:
                across, up = zip(*points, strict=True)
                axis.plot(
                    across, up, marker=marker, linestyle=dash, color="0.0", fillstyle="none", label=family
                )
        flat = [s for s in systems if s.family not in _STYLES and line.values[s.name] is not None]
        for place, system in enumerate(flat):
            value = float(line.values[system.name] or 0.0)
            style = _FLAT[place % len(_FLAT)]
            axis.axhline(
                value, color="0.5", linewidth=0.9, linestyle=style, label=f"{system.name}: {value:.3g}"
            )
        if line.chance is not None:
            axis.axhline(line.chance, label="nothing is recognised", **CHANCE)
        axis.set_xscale("log")
        axis.set_xlabel("epsilon of each stream with noise (nat)")
        axis.set_ylabel(f"{line.title} ({line.unit})" if line.unit else line.title)
        axis.legend(fontsize=7, frameon=False)
    return figure
