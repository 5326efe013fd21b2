"""The figures of a run, readable without colour, and the spectrograms of public utterances.

Needs matplotlib (``pip install 'voxveil[plots]'``).
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from voxveil.audio.files import decode
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.results.report.players import Pair
from voxveil.results.report.results import Summary, headline
from voxveil.results.wording import null_envelope

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "figure_png",
    "privacy_utility_figure",
    "rank_figure",
    "spectrogram",
    "spectrogram_figure",
    "spectrograms",
    "style",
]

_MARKERS = "osD^vP*Xh<>"


@dataclass(frozen=True)
class Theme:
    """Colours of a figure; meaning is never in the colour alone.

    Attributes:
        ink: Text and axes.
        faint: Grid.
        bar: Bars of a histogram.
        band: What is read when nothing leaks.
        series: Colour of each system, in turn.
    """

    ink: str
    faint: str
    bar: str
    band: str
    series: tuple[str, ...]


LIGHT = Theme(
    ink="#1c2024",
    faint="#d9dde1",
    bar="#3f6f8f",
    band="#c9ced4",
    series=("#12436d", "#b5531c", "#2b7a57", "#7d3f7d", "#5b5b5b", "#8a6d00"),
)
DARK = Theme(
    ink="#e6e9ec",
    faint="#3a4046",
    bar="#8fb8d4",
    band="#4a5158",
    series=("#8fc1e3", "#f0a376", "#7fd1ab", "#d3a3d6", "#bdbdbd", "#e0c35a"),
)


def figure_png(figure: Figure) -> bytes:
    """Return a figure as PNG with transparent background; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, transparent=True, metadata={"Software": None})
    return buffer.getvalue()


def rank_figure(summaries: Sequence[Summary], theme: Theme = LIGHT) -> Figure:
    """Draw the rank histogram of the true speaker, one panel per system.

    Args:
        summaries: ``summary.json`` of each system.
        theme: Colours.
    """
    with rc_context(style(theme)):
        columns = min(3, len(summaries))
        rows = math.ceil(len(summaries) / columns)
        figure = Figure(figsize=(2.9 * columns + 0.5, 2.25 * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axis, summary in zip(axes, summaries, strict=False):
            _rank_panel(axis, summary, theme)
        for axis in axes[len(summaries) :]:
            axis.set_visible(False)
        figure.supxlabel("rank of the right speaker", fontsize=9)
        figure.supylabel("share of inputs", fontsize=9)
        return figure


def _rank_panel(axis: Axes, summary: Summary, theme: Theme) -> None:
    attack = headline(summary)
    axis.set_title(f"{summary['system']} ({attack['attacker']})", fontsize=9, loc="left")
    histogram = attack["rank_histogram"]
    if not histogram:
        axis.text(0.5, 0.5, "no ranks", ha="center", transform=axis.transAxes)
        return
    n, total = len(histogram), sum(histogram)
    axis.bar(range(1, n + 1), [count / total for count in histogram], width=0.85, color=theme.bar)
    axis.axhline(1 / n, color=theme.ink, linestyle=(0, (4, 2)), linewidth=1.2)
    axis.text(
        1, 1.02, f"dashed: chance, 1/{n}", fontsize=7, ha="right", va="bottom", transform=axis.transAxes
    )
    axis.set_yscale("log")
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylim(0.5 / total, 1.4)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.set_xlim(0.3, n + 0.7)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))


def privacy_utility_figure(summaries: Sequence[Summary], theme: Theme = LIGHT) -> Figure:
    """Draw privacy against phone error rate: identification rate and EER, worse privacy upwards.

    Args:
        summaries: ``summary.json`` of each system.
        theme: Colours.
    """
    with rc_context(style(theme)):
        figure = Figure(figsize=(9.2, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        references = {headline(summary)["references"] for summary in summaries} - {None}
        chance = 100 / max(references) if references else None
        _trade_panel(left, summaries, "identification_rate", chance, theme)
        _trade_panel(right, summaries, "eer", 50.0, theme)
        left.set_title("inputs identified, %", fontsize=9, loc="left")
        right.set_title("EER, % (axis reversed; 50 is not perfect privacy)", fontsize=9, loc="left")
        right.invert_yaxis()
        for axis in (left, right):
            axis.set_xlabel("phone error rate, % (worse utility to the right)", fontsize=8)
            axis.set_ylabel("worse privacy upwards", fontsize=8)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        return figure


def _trade_panel(
    axis: Axes, summaries: Sequence[Summary], metric: str, chance: float | None, theme: Theme
) -> None:
    band = null_envelope([headline(summary) for summary in summaries], metric)
    if band:
        axis.axhspan(*band, color=theme.band, linewidth=0, label="if nothing leaks, 95 %")
    if chance is not None:
        axis.axhline(chance, color=theme.ink, linestyle=(0, (4, 2)), linewidth=1.2, label="chance")
    for index, summary in enumerate(summaries):
        entry, per = headline(summary)["metrics"][metric], summary["utility"]["per"]
        if entry["value"] is None or per["value"] is None:
            continue
        axis.errorbar(
            per["value"],
            entry["value"],
            xerr=_error(per),
            yerr=_error(entry),
            fmt=_MARKERS[index % len(_MARKERS)],
            color=theme.series[index % len(theme.series)],
            markersize=7,
            markerfacecolor="none" if index % 2 else None,
            markeredgewidth=1.5,
            elinewidth=0.9,
            label=f"{summary['system']} ({headline(summary)['attacker']})",
        )
    axis.margins(x=0.12, y=0.08)


def _error(entry: Any) -> list[list[float]] | None:
    """Return distances to the interval's ends; one that does not hold the value touches it."""
    if not entry.get("ci95"):
        return None
    low, high = entry["ci95"]
    return [[max(0.0, entry["value"] - low)], [max(0.0, high - entry["value"])]]


def style(theme: Theme) -> Any:
    """Return matplotlib's settings for a theme."""
    return {
        "font.size": 8,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.ink,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": theme.faint,
        "grid.linewidth": 0.6,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
    }


_WINDOW = 512
_RANGE_DB = 70.0


def spectrogram(audio: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the power in dB below the loudest bin, (257, K), frames of 32 ms every 10 ms.

    Args:
        audio: (n,) 16 kHz.
    """
    padded = np.pad(audio.astype(np.float64), (_WINDOW // 2, _WINDOW // 2))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW), axis=1)) ** 2
    level = 10.0 * np.log10(power + 1e-12)
    return np.asarray(np.maximum(level - level.max(), -_RANGE_DB).T)


def spectrograms(pairs: Sequence[Pair]) -> dict[str, NDArray[np.float64]]:
    """Return the spectrograms of one utterance: the original, then every system that changes it.

    Args:
        pairs: Of one utterance.
    """
    flacs = {"original": pairs[0].original}
    flacs |= {pair.system: pair.anonymized for pair in pairs if pair.kind != "original"}
    return {name: spectrogram(decode(flac, pairs[0].utterance)) for name, flac in flacs.items()}


def spectrogram_figure(panels: Mapping[str, NDArray[np.float64]], theme: Theme = LIGHT) -> Figure:
    """Draw the spectrograms of one utterance, one above the other.

    Args:
        panels: As :func:`spectrograms` returns them.
        theme: Colours.
    """
    with rc_context(style(theme)):
        figure = Figure(figsize=(7.2, 1.15 * len(panels) + 0.5), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True, sharey=True).ravel()
        for axis, (name, levels) in zip(axes, panels.items(), strict=True):
            _panel(axis, name, levels)
        axes[-1].set_xlabel("seconds", fontsize=8)
        figure.supylabel("kHz", fontsize=8)
        return figure


def _panel(axis: Axes, name: str, levels: NDArray[np.float64]) -> None:
    extent = (0.0, levels.shape[1] * HOP / SAMPLE_RATE, 0.0, SAMPLE_RATE / 2000)
    axis.imshow(levels, origin="lower", aspect="auto", extent=extent, cmap="Greys", vmin=-_RANGE_DB, vmax=0)
    axis.set_title(name, fontsize=8, loc="left", pad=2)
    axis.grid(False)
