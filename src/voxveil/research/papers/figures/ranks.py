"""Rank histograms of several systems, a panel each, with the beta-binomial fit. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator

from voxveil.metrics.betabinomial import fit_betabinomial
from voxveil.metrics.plots import new_figure
from voxveil.research.papers.attacks import Judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["panels_figure"]


def panels_figure(attacks: Sequence[Judged]) -> Figure:
    """Draw the rank histogram of each attack; every one must have ranks.

    Args:
        attacks: At least one.
    """
    columns = 2 if len(attacks) == 4 else min(3, len(attacks))
    rows = math.ceil(len(attacks) / columns)
    figure, axes = new_figure(rows, columns, width=3.2, height=2.5)
    smallest = min(float(a.histogram.sum()) for a in attacks if a.histogram is not None)
    for axis, attack in zip(axes, attacks, strict=False):
        if attack.histogram is None:
            continue
        n, gamma = attack.histogram.size, attack.histogram / attack.histogram.sum()
        k = np.arange(1, n + 1)
        fitted = fit_betabinomial(attack.histogram[None]).gamma[0]
        axis.bar(k, gamma, width=0.85, color="0.75")
        axis.plot(k, np.where(fitted > 0, fitted, np.nan), "-", color="0.1", linewidth=1.2)
        axis.axhline(1 / n, color="0.1", linestyle=(0, (4, 2)), linewidth=1)
        rate = 100 * gamma[0]
        axis.set_title(f"{attack.system}: {rate:.1f} % first", fontsize=9, loc="left")
        axis.set(yscale="log", ylim=(0.4 / smallest, 1.4), xlim=(0.3, n + 0.7))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    for axis in axes[len(attacks) :]:
        axis.set_visible(False)
    figure.supxlabel("rank of the right speaker", fontsize=9)
    figure.supylabel("share of inputs", fontsize=9)
    return figure
