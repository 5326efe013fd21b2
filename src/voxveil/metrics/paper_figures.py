"""The figures that explain the metrics, drawn from :mod:`voxveil.metrics.examples`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from voxveil.metrics.eer import eer, eer_rocch
from voxveil.metrics.examples import pav_example, same_mean_llr, same_mean_scores
from voxveil.metrics.pav import pav, smooth
from voxveil.metrics.plots import CHANCE, new_figure, score_figure

__all__ = ["pav_examples_figure", "same_mean_figure"]

_REPEATS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def same_mean_figure(n: int = 2000, seed: int = 0) -> Figure:
    """Draw Gaussians of equal mean and standard deviations 2 and 1 with the oracle LLR."""
    table = same_mean_scores(n, seed)
    title = f"N(0, 2²) against N(0, 1): EER {100 * eer(table):.1f} %, and yet"
    return score_figure(table, oracle=same_mean_llr, title=title)


def pav_examples_figure() -> Figure:
    """Draw both PAV examples, and the same repeated to length 6n."""
    figure, axes = new_figure(2, 2, width=4.6, height=3.2)
    for axis, first in ((axes[0], 0), (axes[1], 1)):
        table = pav_example(first)
        bins = pav(table)
        smoothed = smooth(bins)
        x = table.values
        axis.plot(x[table.target > 0], np.full(3, 1.0), "o", color="0.1", label="target")
        axis.plot(
            x[table.nontarget > 0], np.full(3, 0.0), "s", color="0.1", fillstyle="none", label="nontarget"
        )
        for bounds, share, dash in (
            (bins, bins.target / (bins.target + bins.nontarget), "-"),
            (smoothed, smoothed.target / (smoothed.target + smoothed.nontarget), "--"),
        ):
            edges = np.concatenate([bounds.low - 0.5, bounds.high[-1:] + 0.5])
            axis.stairs(
                share,
                edges,
                baseline=None,
                linestyle=dash,
                color="0.4",
                label="PAV" if dash == "-" else "smoothed",
            )
        labels = " ".join(str((i + first) % 2) for i in range(6))
        axis.set(ylim=(-0.1, 1.25), xlabel="score", ylabel="share of targets")
        axis.set_title(f"labels {labels}: max |LLR| {smoothed.max_abs_llr():.3f} nat", fontsize=10)
        axis.legend(frameon=False, fontsize=7, ncols=2, loc="upper left")
    lengths = [6 * n for n in _REPEATS]
    for first, marker in ((0, "o"), (1, "s")):
        tables = [pav_example(first, n) for n in _REPEATS]
        worst = [smooth(pav(table)).max_abs_llr() for table in tables]
        label = f"first label {first}"
        axes[2].plot(lengths, worst, f"{marker}-", color="0.1", fillstyle="none", label=label)
        axes[3].plot(
            lengths, [100 * eer(t) for t in tables], f"{marker}-", color="0.1", fillstyle="none", label=label
        )
        hull = [100 * eer_rocch(pav(t)) for t in tables]
        axes[3].plot(lengths, hull, f"{marker}--", color="0.6", fillstyle="none", label=f"{label}, hull")
    axes[2].set(xscale="log", xlabel="number of trials 6n", ylabel="max |LLR| (nat)", ylim=(-0.1, 1))
    axes[3].set(xscale="log", xlabel="number of trials 6n", ylabel="EER (%)")
    axes[2].axhline(0, label="no evidence", **CHANCE)
    axes[3].axhline(50, label="chance", **CHANCE)
    for axis in axes[2:]:
        axis.legend(frameon=False, fontsize=8)
    return figure
