"""Figures of a feature-level experiment, after figures 3, 5 and 6 of the DP speaker anonymization paper.

Readable in greyscale: mechanisms differ by marker and dash; chance and proven limits are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from voxveil.metrics.plots import CHANCE, new_figure
from voxveil.privacy.audit.information import channel_information
from voxveil.research.probe.facts import sharp_fano_limit
from voxveil.research.probe.gather import PUBLISHED, Probe, mean_of, series
from voxveil.results.wording import concentrated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["accuracy_figure", "asi_figure", "correlation_figure", "floor_figure", "track_figure"]

_MARKERS = "osD^vP*X"
_DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (6, 2)))
_GREYS = ("0.0", "0.3", "0.5", "0.15", "0.4", "0.6")


def asi_figure(probes: Sequence[Probe]) -> Figure:
    """Draw P_ASI against epsilon (paper figure 5), with the proven limits and the published values."""
    kinds = [kind for kind in ("pitch", "content") if any(probe["kind"] == kind for probe in probes)]
    figure, axes = new_figure(1, len(kinds), width=6.8, height=4.0)
    for axis, kind in zip(axes, kinds, strict=True):
        chosen = [probe for probe in probes if probe["kind"] == kind]
        chance = 100.0 * (1.0 - chosen[0]["asi"]["chance"])
        axis.axhline(chance, label="chance", **CHANCE)
        _without_noise(axis, chosen, "asi", "p_asi", scale=100.0)
        for index, (name, rows) in enumerate(_noisy(chosen, kind)):
            epsilon = [mean_of(draws, "loss", "epsilon") for draws in rows]
            _line(axis, index, epsilon, rows, ("asi", "p_asi"), name, scale=100.0)
            limit = [100.0 * (1.0 - mean_of(draws, "asi", "limit")) for draws in rows]
            if max(limit) > 0:
                shown = f"least, proven: {name}"
                axis.plot(epsilon, limit, color="0.7", linewidth=0.9, marker="_", label=shown)
        published = [(float(e), v) for e, v in PUBLISHED[kind].items() if e != "inf"]
        axis.plot(
            [e for e, _ in published],
            [float(v.removeprefix("above ")) for _, v in published],
            linestyle="none",
            marker="x",
            color="0.0",
            label="published (below it: 'above')",
        )
        unit = "utterance" if kind == "pitch" else "released vector"
        _finish(axis, f"epsilon per {unit} (nat)", "P_ASI: speaker not named (%)", kind)
        axis.set_ylim(-3, 103)
    return figure


def correlation_figure(probes: Sequence[Probe]) -> Figure:
    """Draw pitch correlation and P_ASI of every pitch mechanism against epsilon (paper figure 6)."""
    chosen = [probe for probe in probes if probe["kind"] == "pitch"]
    figure, (left, right) = new_figure(1, 2, width=6.8, height=4.0)
    _without_noise(left, chosen, "correlation", "value")
    _without_noise(right, chosen, "asi", "p_asi", scale=100.0)
    right.axhline(100.0 * (1.0 - chosen[0]["asi"]["chance"]), label="chance", **CHANCE)
    for index, (name, rows) in enumerate(_noisy(chosen, "pitch")):
        epsilon = [mean_of(draws, "loss", "epsilon") for draws in rows]
        _line(left, index, epsilon, rows, ("correlation", "value"), name)
        floor = [mean_of(draws, "correlation_floor", "value") for draws in rows]
        left.plot(epsilon, floor, color="0.7", linewidth=0.9, marker="_", label=f"noise alone: {name}")
        _line(right, index, epsilon, rows, ("asi", "p_asi"), name, scale=100.0)
    _finish(left, "epsilon per utterance (nat)", "correlation with the true F0", "what is left of the F0")
    _finish(right, "epsilon per utterance (nat)", "P_ASI: speaker not named (%)", "who speaks")
    return figure


def accuracy_figure(probes: Sequence[Probe]) -> Figure:
    """Draw frame accuracy, and word errors where counted, against the epsilon of the median utterance."""
    chosen = [probe for probe in probes if probe["kind"] == "content"]
    worded = any("wer" in probe for probe in chosen)
    figure, axes = new_figure(1, 2 if worded else 1, width=6.8, height=4.2)
    panels: list[tuple[Axes, tuple[str, ...], str]] = [
        (axes[0], ("frame_accuracy", "all", "value"), "10 ms frames whose phone is right (%)")
    ]
    if worded:
        panels.append((axes[1], ("wer", "value"), "word error rate (%)"))
    for axis, path, label in panels:
        _without_noise(axis, chosen, *path)
        for index, (name, rows) in enumerate(_noisy(chosen, "content")):
            epsilon = [mean_of(draws, "epsilon_utterance", "median") for draws in rows]
            _line(axis, index, epsilon, rows, path, name)
        if path[0] == "frame_accuracy":
            axis.axhline(_commonest(chosen), label="one label for all", **CHANCE)
            _limit(axis, chosen)
        _finish(axis, "epsilon of the median utterance (nat)", label, "content")
    return figure


def floor_figure(floor: Mapping[str, Any], probes: Sequence[Probe] = ()) -> Figure:
    """Draw every mechanism's word errors against epsilon, above the floor of all of them.

    Args:
        floor: Results of ``voxveil probe words``.
        probes: Content probes with word errors, of the same natural language.
    """
    figure, (left, right) = new_figure(1, 2, width=6.8, height=4.4)
    names = {"drawn": "sentences drawn from π", "text": "text"}
    for index, (name, part) in enumerate(floor["sets"].items()):
        limit, rows = part["floor"], part["resampled"]
        what = "proven" if limit["kind"] == "theorem" else "estimate"
        line: dict[str, Any] = {"color": _GREYS[2 * index], "linestyle": _DASHES[index], "linewidth": 1.6}
        point: dict[str, Any] = {"color": _GREYS[2 * index], "marker": _MARKERS[index], "markersize": 5}
        epsilon = limit["epsilons"]
        left.plot(epsilon, [100 * x for x in limit["exact"]], label=f"most, {names[name]}: {what}", **line)
        right.plot(epsilon, limit["errors"], label=f"least, {names[name]}: {what}", **line)
        shown = f"resampled words, {names[name]}, α = {floor['alpha']:g}"
        point |= {"linestyle": (0, (1, 2)), "label": shown}
        left.plot(epsilon, [row["exact"] for row in rows], **point)
        right.plot(epsilon, [row["errors"] for row in rows], **point)
    chosen = [probe for probe in probes if probe["kind"] == "content" and "wer" in probe]
    for index, (name, draws) in enumerate(_noisy(chosen, "content") if chosen else (), start=2):
        across = [mean_of(row, "epsilon_utterance", "median") for row in draws]
        _line(right, index, across, draws, ("wer", "value"), name)
    _finish(left, "epsilon of an utterance (nat)", "sentences with every word right (%)", "whole sentence")
    _finish(right, "epsilon of an utterance (nat)", "word error rate (%)", "words")
    left.set_ylim(-3, 103)
    return figure


def track_figure(probes: Sequence[Probe]) -> Figure:
    """Draw true and released pitch tracks of held-out public speakers (paper figure 3), a row per variant."""
    rows = [draws[0] for variants in series(probes, "pitch").values() for draws in variants]
    columns = min(len(probe["tracks"]) for probe in rows)
    figure, axes = new_figure(len(rows), columns, width=3.2, height=1.5)
    for position, axis in enumerate(axes):
        probe, track = rows[position // columns], rows[position // columns]["tracks"][position % columns]
        for name, color, style in (("true", "0.6", "-"), ("released", "0.0", "--")):
            values = np.array(track[name], float)
            values[values <= 0] = np.nan
            axis.plot(np.arange(len(values)) / 100.0, values, color=color, linestyle=style, linewidth=1.1)
        axis.set_ylim(0, 1.02)
        if position % columns == 0:
            epsilon = probe["loss"]["epsilon"]
            axis.set_ylabel(f"{probe['mechanism']}\nε = {'∞' if epsilon == 'inf' else f'{epsilon:g}'}")
        if position // columns == len(rows) - 1:
            axis.set_xlabel("time (s)")
        if position < columns:
            axis.set_title(track["utterance"], fontsize=9)
    figure.legend(
        handles=[
            Line2D([], [], color="0.6", label="true F0 (unit scale)"),
            Line2D([], [], color="0.0", linestyle="--", label="released"),
        ],
        loc="outside upper right",
        fontsize=8,
        frameon=False,
    )
    return figure


def _noisy(probes: Sequence[Probe], kind: str) -> list[tuple[str, list[list[Probe]]]]:
    named = []
    for (mechanism, rate), rows in series(probes, kind).items():
        # What is under zCDP has no place on an axis of pure epsilons; the table has it.
        if mechanism != "identity" and not concentrated(rows[0][0]["loss"]):
            named.append((f"{mechanism}, every {rate}" if rate not in ("", "10 ms") else mechanism, rows))
    return named


def _line(
    axis: Axes,
    index: int,
    epsilon: Sequence[float],
    rows: Sequence[Sequence[Probe]],
    path: tuple[str, ...],
    name: str,
    *,
    scale: float = 1.0,
) -> None:
    """Draw the mean over draws as a line and every draw as a small point."""
    style: dict[str, Any] = {"color": _GREYS[index % len(_GREYS)], "marker": _MARKERS[index % len(_MARKERS)]}
    means = [scale * mean_of(draws, *path) for draws in rows]
    axis.plot(epsilon, means, linestyle=_DASHES[index % len(_DASHES)], label=name, markersize=5, **style)
    for x, draws in zip(epsilon, rows, strict=True):
        values = [scale * mean_of([draw], *path) for draw in draws]
        axis.plot([x] * len(values), values, linestyle="none", markersize=2.5, alpha=0.6, **style)


def _without_noise(axis: Axes, probes: Sequence[Probe], *path: str, scale: float = 1.0) -> None:
    plain = [probe for probe in probes if probe["mechanism"] == "identity"]
    if plain:
        value = scale * mean_of(plain, *path)
        axis.axhline(value, color="0.0", linewidth=0.8, label=f"no noise: {value:.3g}")


def _commonest(probes: Sequence[Probe]) -> float:
    return 100.0 * mean_of(probes[:1], "frame_chance")


def _limit(axis: Axes, probes: Sequence[Probe]) -> None:
    """Draw the accuracy limit of equally likely phones from the vectors of one average-length phone.

    An estimate, no proof: neighbouring phones, and phones that are not equally likely, help a listener.
    """
    epsilons = [0.1 * 1.25**step for step in range(31)]
    probe = probes[0]
    frames, vectors = float(probe["phone_frames"]), mean_of([probe], "vectors", "median")
    limit = [
        100.0 * sharp_fano_limit(frames * channel_information(epsilon), int(probe["phones"]))
        for epsilon in epsilons
    ]
    axis.plot(
        [epsilon * vectors for epsilon in epsilons],
        limit,
        color="0.7",
        linewidth=1.2,
        label=f"information of {frames:.0f} vectors, one phone of {probe['phones']} (estimate)",
    )


def _finish(axis: Axes, across: str, up: str, title: str) -> None:
    # Beside the panel, where no line runs through it.
    axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axis.set_xscale("log")
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.set_title(title)
