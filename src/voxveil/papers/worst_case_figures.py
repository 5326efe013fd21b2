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
    """Draw a panel per estimator: EER in %, worst case in nat on a log scale; systems numbered by EER."""
    figure, axes = new_figure(2, 2, width=4.8, height=3.4)
    drawn = [each for each in measured if each.metrics["eer"]["value"] is not None]
    names = sorted(
        [(float(each.metrics["eer"]["value"]), 1, place) for place, each in enumerate(drawn)]
        + [(system.eer, 0, place) for place, system in enumerate(published)]
    )
    numbers = {(whose, place): number for number, (_, whose, place) in enumerate(names, start=1)}
    for axis, metric, title in zip(axes, ESTIMATORS, _TITLES, strict=True):
        for place, system in enumerate(published):
            value = published_value(system, metric)
            axis.plot(system.eer, value, "x", color="0.45", markersize=6)
            _number(axis, numbers[0, place], (system.eer, value), (3, 4), "0.45")
        for place, each in enumerate(drawn):
            eer, worst = each.metrics["eer"]["value"], each.metrics[metric]
            if not worst["value"]:
                continue
            if worst["ci95"] and worst["ci95"][0] > 0:
                axis.vlines(eer, *worst["ci95"], color="0.6", linewidth=0.9)
            axis.plot(eer, worst["value"], _marker(each), color="0.05", markersize=4)
            _number(axis, numbers[1, place], (eer, worst["value"]), (4, -7), "0.05")
        axis.axvline(50, **CHANCE)
        axis.set(yscale="log", xlim=(-2, 60), xlabel="EER (%)", ylabel="ε_max (nat)")
        axis.set_title(title, fontsize=10)
    key = [
        axes[0].plot(
            [],
            [],
            _marker(drawn[place]) if ours else "x",
            color="0.05" if ours else "0.45",
            markersize=4,
            label=f"{number} {drawn[place].system if ours else published[place].name}",
        )[0]
        for number, (_, ours, place) in enumerate(names, start=1)
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=6, fontsize=7, frameon=False)
    return figure


def _marker(each: Judged) -> str:
    return "s" if each.attacker == "external" else "o"


def _number(axis: Axes, number: int, place: tuple[float, float], beside: tuple[int, int], shade: str) -> None:
    axis.annotate(str(number), place, xytext=beside, textcoords="offset points", fontsize=6.5, color=shade)
