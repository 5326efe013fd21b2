"""EER against the worst case by four estimators. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from voxveil.metrics.plots import CHANCE, new_figure
from voxveil.papers.attacks import Judged
from voxveil.papers.worst_case import ESTIMATORS, published_value
from voxveil.report.published import PublishedSystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["estimators_figure"]

_TITLES = ("PAV", "two Gaussians", "two t distributions", "rank, beta-binomial")


def estimators_figure(measured: Sequence[Judged], published: Sequence[PublishedSystem]) -> Figure:
    """Draw a panel per estimator: EER in %, worst case in nat on a log scale."""
    figure, axes = new_figure(2, 2, width=4.8, height=3.6)
    for axis, metric, title in zip(axes, ESTIMATORS, _TITLES, strict=True):
        for system in published:
            value = published_value(system, metric)
            axis.plot(system.eer, value, "x", color="0.45", markersize=6)
            _name(axis, system.name, (system.eer, value), (4, 3), "0.45")
        for each in measured:
            eer, worst = each.metrics["eer"], each.metrics[metric]
            if eer["value"] is None or not worst["value"]:
                continue
            if worst["ci95"] and worst["ci95"][0] > 0:
                axis.vlines(eer["value"], *worst["ci95"], color="0.6", linewidth=0.9)
            marker = "s" if each.attacker == "external" else "o"
            axis.plot(eer["value"], worst["value"], marker, color="0.05", markersize=4.5)
            _name(axis, each.system, (eer["value"], worst["value"]), (4, -8), "0.05")
        axis.axvline(50, **CHANCE)
        axis.set(yscale="log", xlim=(-2, 60), xlabel="EER (%)", ylabel="ε_max (nat)")
        axis.set_title(title, fontsize=10)
    axes[0].plot([], [], "x", color="0.45", label="published")
    axes[0].plot([], [], "o", color="0.05", label="measured here, range over speakers")
    axes[0].plot([], [], label="EER 50 %", **CHANCE)
    axes[0].legend(frameon=False, fontsize=7, loc="lower left")
    return figure


def _name(axis: Axes, text: str, place: tuple[float, float], beside: tuple[int, int], shade: str) -> None:
    axis.annotate(text, place, xytext=beside, textcoords="offset points", fontsize=6, color=shade)
