"""Figures of the metrics. Each function returns a matplotlib Figure; none touches pyplot's state.

Beside the figures of one attack there is one of several attackers in several scenarios, and those that
explain the metrics by the numbers of :mod:`voxveil.metrics.examples`. Readable in greyscale: lines differ
by dash and marker, and chance is drawn in every panel that has one. Needs matplotlib
(``pip install 'voxveil[plots]'``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from voxveil.metrics.betabinomial import fit_betabinomial
from voxveil.metrics.data import CountTable, FloatArray, UndefinedMetricError
from voxveil.metrics.disclosure import SpeakerRow
from voxveil.metrics.eer import det_points, eer, eer_rocch
from voxveil.metrics.eps_gauss import fit_gauss
from voxveil.metrics.eps_t import fit_t
from voxveil.metrics.examples import pav_example, same_mean_llr, same_mean_scores
from voxveil.metrics.pav import PavBins, pav, smooth
from voxveil.metrics.population import PopulationCurve
from voxveil.metrics.zebra import ece, expected_disclosure

__all__ = [
    "CHANCE",
    "attack_matrix_figure",
    "det_figure",
    "ece_figure",
    "llr_curves",
    "new_figure",
    "pav_examples_figure",
    "population_figure",
    "rank_histogram_figure",
    "same_mean_figure",
    "save_figure",
    "score_figure",
    "speakers_figure",
]

CHANCE: dict[str, Any] = {"color": "0.55", "linestyle": ":", "linewidth": 1.5}
"""Line style of chance, the same in every figure."""

_PERCENT_TICKS = (0.1, 1, 5, 20, 50, 80, 95, 99, 99.9)


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 5.5, height: float = 3.8
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row; ``width`` and ``height`` in inch are per panel."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, list(axes.ravel())


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically, without date or version: equal figures give equal files."""
    import io

    import matplotlib

    from voxveil.runtime.atomic import write_bytes

    kind = path.suffix.lstrip(".")
    metadata: dict[str, Any] = {
        "png": {"Software": None},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
    }[kind]
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "voxveil"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    write_bytes(path, buffer.getvalue())


def rank_histogram_figure(histograms: Mapping[str, FloatArray]) -> Figure:
    """Draw rank probabilities on log axes with the chance line and the beta-binomial fit.

    Args:
        histograms: Label to weights of ranks 1..N, shape ``(N,)``.
    """
    figure, (axis,) = new_figure()
    n, seldom = 2, 1.0
    for (label, histogram), marker in zip(histograms.items(), "osD^v<>ph*" * 10, strict=False):
        n = histogram.size
        k = np.arange(1, n + 1)
        gamma = histogram / histogram.sum()
        seen = gamma > 0
        seldom = min(seldom, float(gamma[seen].min()), 1 / n)
        (line,) = axis.plot(k[seen], gamma[seen], marker, markersize=4, fillstyle="none", label=label)
        fitted = fit_betabinomial(histogram[None]).gamma[0]
        axis.plot(k, np.where(fitted > 0, fitted, np.nan), "-", color=line.get_color(), linewidth=1)
        axis.axhline(1 / n, **CHANCE)
    axis.plot([], [], "-", color="0.2", linewidth=1, label="beta-binomial fit")
    axis.plot([], [], label="chance, 1/N", **CHANCE)
    # A fit falls to 1e-16, far below what any number of inputs can show.
    axis.set(xscale="log", yscale="log", xlim=(0.9, n * 1.1), ylim=(seldom / 10, 1.5))
    axis.set(xlabel="rank of the right speaker", ylabel="probability", title=f"Rank histogram, N = {n}")
    axis.legend(frameon=False, fontsize=8)
    return figure


def ece_figure(bins: PavBins) -> Figure:
    """Draw the ECE profile (ZEBRA): the area between the curves is the expected disclosure."""
    figure, (axis,) = new_figure()
    logit = np.linspace(-8, 8, 401)
    t, n = bins.n_target, bins.n_nontarget
    nothing = pav(CountTable(bins.low[:1], np.array([t]), np.array([n]), t, n))
    x = logit / np.log(10)
    default, known = ece(nothing, logit), ece(bins, logit)
    axis.plot(x, default, label="prior alone (nothing leaks)", **CHANCE)
    axis.plot(x, known, "-", color="0.1", label="with the scores (PAV)")
    axis.fill_between(x, known, default, color="0.88")
    smoothed = smooth(bins)
    bits, nats = expected_disclosure(bins), smoothed.max_abs_llr()
    axis.set(xlabel="prior log10 odds of 'same speaker'", ylabel="empirical cross-entropy (bit)")
    axis.set_title(
        f"ZEBRA: expected {bits:.3f} bit, worst case {nats:.2f} nat ({nats / np.log(10):.2f} in log10)",
        fontsize=10,
    )
    axis.legend(frameon=False, fontsize=8)
    return figure


def det_figure(tables: Mapping[str, CountTable]) -> Figure:
    """Draw DET curves on normal-deviate axes, steps and convex hull, with the chance line."""
    figure, (axis,) = new_figure(width=4.8, height=4.6)
    edge = 0.0005
    for (label, table), dash in zip(tables.items(), ("-", "--", "-.", (0, (1, 1))) * 25, strict=False):
        for hull, width in ((False, 1.4), (True, 0.7)):
            false, miss = (np.clip(p, edge / 2, 1 - edge / 2) for p in det_points(table, hull=hull))
            text = f"{label}: EER {100 * eer(table):.1f} %, hull {100 * eer_rocch(pav(table)):.1f} %"
            (line,) = axis.plot(ndtri(false), ndtri(miss), linestyle=dash, linewidth=width)
            line.set(color="0.6" if hull else "0.1", label=None if hull else text)
    span = ndtri([edge, 1 - edge])
    axis.plot(span, -span, label="chance", **CHANCE)
    ticks = np.array(_PERCENT_TICKS)
    for setter in (axis.set_xticks, axis.set_yticks):
        setter(ndtri(ticks / 100), [f"{t:g}" for t in ticks])
    axis.set(xlim=span, ylim=span, xlabel="false alarm rate (%)", ylabel="miss rate (%)", title="DET")
    axis.legend(frameon=False, fontsize=8)
    return figure


def llr_curves(table: CountTable) -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Return the LLR as a function of the score by PAV (smoothed), Gaussians and t, where defined."""
    bins = smooth(pav(table))

    def by_pav(scores: FloatArray) -> FloatArray:
        at = np.clip(np.searchsorted(bins.low, scores, side="right") - 1, 0, bins.llr.size - 1)
        result: FloatArray = bins.llr[at]
        return result

    curves: dict[str, Callable[[FloatArray], FloatArray]] = {"PAV": by_pav}
    for name, fit in (("Gauss", fit_gauss), ("t", fit_t)):
        try:
            curves[name] = fit(table).llr
        except UndefinedMetricError:
            continue
    return curves


def score_figure(
    table: CountTable, *, oracle: Callable[[FloatArray], FloatArray] | None = None, title: str = "Scores"
) -> Figure:
    """Draw both score distributions above the LLR of each estimator.

    Args:
        table: The scores.
        oracle: True LLR of a score, where it is known.
        title: Title of the figure.
    """
    figure, (top, bottom) = new_figure(2, 1, height=2.7)
    low, high = float(table.values[0]), float(table.values[-1])
    pad = 0.5 if low == high else 0.0
    edges = np.linspace(low - pad, high + pad, 61)
    for counts, label, style in (
        (table.nontarget, "nontarget", {"color": "0.8", "fill": True}),
        (table.target, "target", {"edgecolor": "0.1", "fill": False, "linewidth": 1.4}),
    ):
        density, _ = np.histogram(table.values, edges, weights=counts.astype(np.float64))
        top.stairs(density / density.sum() / np.diff(edges), edges, label=label, **style)  # type: ignore[arg-type]
    top.set(ylabel="density", title=title)
    top.legend(frameon=False, fontsize=8)
    x = np.linspace(edges[0], edges[-1], 801)
    for (name, curve), dash in zip(llr_curves(table).items(), ("-", "--", "-."), strict=False):
        bottom.plot(x, curve(x), linestyle=dash, color="0.1", linewidth=1.2, label=f"LLR by {name}")
    if oracle is not None:
        bottom.plot(x, oracle(x), color="0.5", linewidth=3, alpha=0.5, label="true LLR")
    bottom.axhline(0, label="no evidence", **CHANCE)
    bottom.set(xlabel="score", ylabel="LLR (nat)", xlim=(edges[0], edges[-1]))
    bottom.legend(frameon=False, fontsize=8)
    return figure


def speakers_figure(rows: Sequence[SpeakerRow], n_references: int) -> Figure:
    """Draw every speaker's identification rate and disclosure, most exposed first."""
    figure, (top, bottom) = new_figure(2, 1, height=2.4)
    x = np.arange(1, len(rows) + 1)
    rates, bits = [row.identification_rate for row in rows], [row.disclosure for row in rows]
    weights = np.array([row.n_inputs for row in rows], dtype=np.float64)
    for axis, values, chance, unit in (
        (top, rates, 100 / n_references, "identification rate (%)"),
        (bottom, bits, 0.0, "disclosure (bit)"),
    ):
        axis.vlines(x, 0, values, color="0.7", linewidth=1)
        axis.plot(x, values, "o", color="0.1", markersize=3)
        mean = float(np.average(values, weights=weights))
        axis.axhline(mean, color="0.1", linestyle="--", linewidth=1, label=f"mean over inputs {mean:.3g}")
        axis.axhline(chance, label=f"chance {chance:.3g}", **CHANCE)
        axis.set(ylabel=unit)
        axis.legend(frameon=False, fontsize=8)
    top.set_title(
        f"{len(rows)} speakers among {n_references}: the average hides the most exposed", fontsize=10
    )
    bottom.set(xlabel="speaker, most exposed first")
    return figure


def population_figure(curve: PopulationCurve) -> Figure:
    """Draw identification rate and mean disclosure by the number of speakers."""
    figure, (left, right) = new_figure(1, 2, width=4.8)
    known = curve.sizes <= curve.n_references
    x, beyond = curve.sizes, curve.sizes >= curve.n_references
    left.plot(x[known], 100 * curve.identification[known], "o", color="0.1", markersize=4, label="measured")
    right.plot(x[known], curve.disclosure[known], "o", color="0.1", markersize=4, label="measured")
    left.fill_between(
        x[beyond], 1e-9, 100 * curve.upper[beyond], color="0.92", label="possible without any assumption"
    )
    for axis, values, scale in ((left, curve.identification_bb, 100.0), (right, curve.disclosure_bb, 1.0)):
        if values is not None:
            axis.plot(x[known], scale * values[known], "-", color="0.4", label="beta-binomial")
            axis.plot(
                x[beyond], scale * values[beyond], "--", color="0.4", label="beta-binomial, extrapolated"
            )
        axis.set(xscale="log", xlabel="number of speakers N")
    floor = 100 / float(x[-1])
    left.plot(x, 100 / x, label="chance, 1/N", **CHANCE)
    left.set(yscale="log", ylabel="identification rate (%)", ylim=(floor / 2, 120))
    right.plot(x, np.log2(x), color="0.1", linestyle=(0, (4, 2, 1, 2)), linewidth=1, label="full, log2 N")
    right.axhline(0, label="chance", **CHANCE)
    right.set(ylabel="mean disclosure (bit)")
    left.set_title(f"measured up to N = {curve.n_references}", fontsize=10)
    right.set_title("beyond it: extrapolation", fontsize=10)
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=8)
    return figure


_MARKERS = {"original": "o", "ignorant": "^", "lazy_informed": "s", "semi_informed": "D"}


def attack_matrix_figure(attacks: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the EER of every attacker in every scenario with its interval over speakers.

    Args:
        attacks: Summaries: ``attacker``, ``scenario`` and ``metrics`` with ``eer``.
    """
    names = list(dict.fromkeys(str(attack["attacker"]) for attack in attacks))
    scenarios = [name for name in _MARKERS if any(attack["scenario"] == name for attack in attacks)]
    figure, (axis,) = new_figure(width=max(5.5, 1.1 * len(names) + 2.5))
    for position, scenario in enumerate(scenarios):
        shift = (position - (len(scenarios) - 1) / 2) * 0.16
        shade = f"{0.1 + 0.6 * position / max(1, len(scenarios) - 1):.2f}"
        chosen = [attack for attack in attacks if attack["scenario"] == scenario]
        for attack in chosen:
            entry, x = attack["metrics"]["eer"], names.index(attack["attacker"]) + shift
            if entry["value"] is not None and entry["ci95"]:
                axis.vlines(x, *entry["ci95"], color=shade, linewidth=1.2)
        known = [attack for attack in chosen if attack["metrics"]["eer"]["value"] is not None]
        axis.plot(
            [names.index(attack["attacker"]) + shift for attack in known],
            [attack["metrics"]["eer"]["value"] for attack in known],
            _MARKERS[scenario],
            color=shade,
            fillstyle="full" if scenario == "semi_informed" else "none",
            label=scenario.replace("_", "-"),
        )
    axis.axhline(50, label="chance", **CHANCE)
    axis.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    axis.set(ylabel="EER (%)", title="Every attacker; lower = more identity left", ylim=(0, 65))
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


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
        for bounds, label, dash in ((bins, "PAV", "-"), (smoothed, "smoothed", "--")):
            share = bounds.target / (bounds.target + bounds.nontarget)
            edges = np.concatenate([bounds.low - 0.5, bounds.high[-1:] + 0.5])
            axis.stairs(share, edges, baseline=None, linestyle=dash, color="0.4", label=label)
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
