"""EER against the worst case by four estimators. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxveil.metrics.plots import CHANCE, new_figure
from voxveil.research.papers.attacks import Judged
from voxveil.results.report.published import ESTIMATORS, PublishedSystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["estimators_figure"]

_TITLES = ("PAV", "two Gaussians", "two t distributions", "rank, beta-binomial")


@dataclass(frozen=True)
class _System:
    """A system of the figure: its EER in %, name, marker, its number's place beside it, and worst cases."""

    eer: float
    name: str
    marker: str
    shade: str
    size: float
    beside: tuple[int, int]
    worst: Mapping[str, Mapping[str, Any]]


def estimators_figure(measured: Sequence[Judged], published: Sequence[PublishedSystem]) -> Figure:
    """Draw a panel per estimator: EER in %, worst case in nat on a log scale; systems numbered by EER."""
    figure, axes = new_figure(2, 2, width=4.8, height=3.4)
    shown = sorted(
        [_published(system) for system in published]
        + [_measured(attack) for attack in measured if attack.metrics["eer"]["value"] is not None],
        key=lambda system: system.eer,
    )
    for axis, metric, title in zip(axes, ESTIMATORS, _TITLES, strict=True):
        for number, system in enumerate(shown, start=1):
            _draw(axis, number, system, system.worst[metric])
        axis.axvline(50, **CHANCE)
        axis.set(yscale="log", xlim=(-2, 60), xlabel="EER (%)", ylabel="ε_max (nat)")
        axis.set_title(title, fontsize=10)
    key = [
        axes[0].plot(
            [], [], system.marker, color=system.shade, markersize=4, label=f"{number} {system.name}"
        )[0]
        for number, system in enumerate(shown, start=1)
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=6, fontsize=7, frameon=False)
    return figure


def _published(system: PublishedSystem) -> _System:
    worst = {metric: {"value": system.value(metric), "ci95": None} for metric in ESTIMATORS}
    return _System(system.eer, system.name, "x", "0.45", 6, (3, 4), worst)


def _measured(attack: Judged) -> _System:
    marker = "s" if attack.attacker == "external" else "o"
    return _System(attack.metrics["eer"]["value"], attack.system, marker, "0.05", 4, (4, -7), attack.metrics)


def _draw(axis: Axes, number: int, system: _System, worst: Mapping[str, Any]) -> None:
    if not worst["value"]:
        return
    if worst["ci95"] and worst["ci95"][0] > 0:
        axis.vlines(system.eer, *worst["ci95"], color="0.6", linewidth=0.9)
    point = (system.eer, worst["value"])
    axis.plot(*point, system.marker, color=system.shade, markersize=system.size)
    axis.annotate(
        str(number), point, xytext=system.beside, textcoords="offset points", fontsize=6.5, color=system.shade
    )
