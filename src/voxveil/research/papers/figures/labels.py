"""Placement of labels beside points without overlap. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["name_at_the_right", "spread"]

#: Height of a name as a share of the axis.
_GAP = 0.05


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Return positions at least ``gap`` apart, as close to the values as possible.

    Values that would stand too close are put as one block around their mean; order is kept.
    """
    order = np.argsort(values, kind="stable")
    blocks: list[list[int]] = []
    for index in order:
        blocks.append([int(index)])
        while len(blocks) > 1 and _low(blocks[-1], values, gap) < _high(blocks[-2], values, gap) + gap:
            last = blocks.pop()
            blocks[-1] += last
    places = [0.0] * len(values)
    for block in blocks:
        for step, index in enumerate(block):
            places[index] = _low(block, values, gap) + step * gap
    return places


def _low(block: Sequence[int], values: Sequence[float], gap: float) -> float:
    return float(np.mean([values[index] for index in block])) - gap * (len(block) - 1) / 2


def _high(block: Sequence[int], values: Sequence[float], gap: float) -> float:
    return _low(block, values, gap) + gap * (len(block) - 1)


def name_at_the_right(axis: Axes, names: Sequence[tuple[str, float]]) -> None:
    """Write each name right of a linear axis, at its value where there is room, with a line to it."""
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    beside = axis.get_yaxis_transform()
    places = spread([value for _, value in names], _GAP * (high - low))
    for (name, value), height in zip(names, places, strict=True):
        axis.annotate(
            f"{name} {value:.3g}",
            xy=(1, value),
            xycoords=beside,
            xytext=(1.05, height),
            textcoords=beside,
            va="center",
            fontsize=7,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5},
        )
