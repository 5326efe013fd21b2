"""Figures 1 and 2 of the worst-case paper. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.eps_gauss import GaussPair
from voxveil.metrics.plots import CHANCE, llr_curves, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["densities_figure", "llr_figure"]


def densities_figure(table: CountTable, truth: GaussPair) -> Figure:
    """Draw the two score distributions of a draw and their true densities."""
    figure, (axis,) = new_figure(width=6.4, height=3.4)
    edges = np.linspace(table.values[0], table.values[-1], 61)
    x = np.linspace(edges[0], edges[-1], 801)
    for counts, mean, sd, label, fill, dash in (
        (table.nontarget, truth.mean_nontarget, truth.sd_nontarget, "nontarget, N(0, 1)", True, "--"),
        (table.target, truth.mean_target, truth.sd_target, "target, N(0, 2²)", False, "-"),
    ):
        weights = counts.astype(np.float64)
        density, _ = np.histogram(table.values, edges, weights=weights)
        heights = density / density.sum() / np.diff(edges)
        axis.stairs(heights, edges, fill=fill, color="0.8" if fill else "0.1", label=label)
        axis.plot(x, norm.pdf(x, mean, sd), linestyle=dash, color="0.1", linewidth=1.0)
    axis.axvline(0, label="threshold of the EER: 50 %", **CHANCE)
    axis.set(xlabel="score", ylabel="density", xlim=(edges[0], edges[-1]))
    axis.legend(frameon=False, fontsize=8)
    return figure


def llr_figure(table: CountTable, truth: Callable[[FloatArray], FloatArray]) -> Figure:
    """Draw the true LLR of every score and the estimators' of a draw."""
    figure, (axis,) = new_figure(width=6.4, height=3.8)
    x = np.linspace(table.values[0], table.values[-1], 801)
    axis.plot(x, truth(x), color="0.5", linewidth=4, alpha=0.5, label="true LLR, 3/8 s² - log 2")
    for (name, curve), dash in zip(llr_curves(table).items(), ("-", "--", "-."), strict=False):
        axis.plot(x, curve(x), linestyle=dash, color="0.1", linewidth=1.2, label=f"by {name}")
    axis.axhline(0, label="no evidence", **CHANCE)
    axis.set(xlabel="score", ylabel="LLR (nat)", xlim=(x[0], x[-1]))
    axis.legend(frameon=False, fontsize=8)
    return figure
