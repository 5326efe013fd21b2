"""Figures: what is drawn, and that equal results draw equal pictures."""

from __future__ import annotations

import copy

import pytest

figures = pytest.importorskip("voxveil.results.report.figures", reason="matplotlib is not installed")


def levels(axis) -> list[float]:
    """Heights of the horizontal lines across an axis."""
    heights = [list(line.get_ydata()) for line in axis.lines]
    return [float(ends[0]) for ends in heights if len(ends) == 2 and ends[0] == ends[1]]


def test_ranks_show_every_system_with_chance(summaries) -> None:
    figure = figures.rank_figure(summaries)
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in axes] == [f"{s['system']} (ecapa)" for s in summaries]
    for axis, summary in zip(axes, summaries, strict=True):
        assert 1 / 8 in levels(axis)
        histogram = summary["attacks"][0]["rank_histogram"]
        heights = [bar.get_height() for bar in axis.patches]
        assert heights == pytest.approx([count / sum(histogram) for count in histogram])


def test_a_system_without_ranks_says_so(summaries) -> None:
    changed = copy.deepcopy(summaries)
    changed[0]["attacks"][0].update(rank_histogram=None, references=None)
    axis = figures.rank_figure(changed).axes[0]
    assert "no ranks" in [text.get_text() for text in axis.texts]


def test_trade_off_marks_chance_and_tells_systems_apart_without_colour(summaries) -> None:
    figure = figures.privacy_utility_figure(summaries)
    left, right = figure.axes[:2]
    assert 100 / 8 in levels(left)
    assert 50.0 in levels(right)
    low, high = right.get_ylim()
    assert low > high
    looks = {
        (line.get_marker(), line.get_markerfacecolor() == "none")
        for line in left.lines
        if line.get_marker() not in ("None", "|", "_")
    }
    assert len(looks) == len(summaries)


def test_undefined_values_are_left_out(summaries) -> None:
    changed = copy.deepcopy(summaries)
    changed[1]["attacks"][0]["metrics"]["eer"].update(value=None, ci95=None)
    changed[2]["utility"]["per"] = {"value": None, "ci95": None}
    figure = figures.privacy_utility_figure(changed)
    _, labels = figure.axes[1].get_legend_handles_labels()
    assert [label for label in labels if "(ecapa)" in label] == ["original (ecapa)"]


def test_equal_results_draw_equal_bytes(summaries) -> None:
    first, second = (figures.figure_png(figures.rank_figure(summaries[:1])) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert first != figures.figure_png(figures.rank_figure(summaries[:1], figures.DARK))
