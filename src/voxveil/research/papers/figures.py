"""Figures of the reproduced papers. Needs matplotlib.

Figures 1 and 2 and the systems table of the worst-case paper, rank histograms of several systems (a panel
each, with the beta-binomial fit), and systems against epsilon (a panel for each metric, a line for each
family). Labels beside points are placed without overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator
from scipy.stats import norm

from voxveil.metrics.betabinomial import fit_betabinomial
from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.eps_gauss import GaussPair
from voxveil.metrics.plots import CHANCE, llr_curves, new_figure
from voxveil.research.papers.attacks import Judged
from voxveil.results.report.published import ESTIMATORS, PublishedSystem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from voxveil.research.papers.families import System

__all__ = [
    "Line",
    "against_epsilon_figure",
    "densities_figure",
    "estimators_figure",
    "llr_figure",
    "name_at_the_right",
    "panels_figure",
    "spread",
]


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
