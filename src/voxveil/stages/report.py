"""Stage ``report``: the page, its figures and ``results.json``; then the run is published to MLflow.

The files are complete before MLflow is spoken to. A tracking server that is away costs one
warning line, and ``voxveil track sync`` publishes the same later.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.results.report.page import Picture, page
from voxveil.results.report.players import Pair, by_utterance, read_pairs
from voxveil.results.report.results import Summary, read_summaries, same_corpus
from voxveil.runtime.atomic import write_bytes, write_json, write_text
from voxveil.runtime.errors import MissingExtraError, VoxveilError
from voxveil.stages.context import StageContext
from voxveil.stages.training_runs import training_fingerprints
from voxveil.tracking.publish.send import publish
from voxveil.tracking.store import tracking_enabled, warn

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Write the report of all systems and publish it."""
    metrics, samples, out = context.inputs["metrics"], context.inputs["samples"], context.outputs["report"]
    systems = context.params.systems
    summaries = read_summaries(metrics, systems)
    corpus = same_corpus(summaries)
    pictures = _draw(summaries)
    for name, picture in pictures.items():
        write_bytes(out / "figures" / f"{name}.png", picture.light)
    pairs = [
        pair for name, system in systems.items() for pair in read_pairs(samples / name, name, system.kind)
    ]
    spectra = _spectra(pairs)
    for utterance, picture in spectra.items():
        write_bytes(out / "figures" / f"spectrogram-{utterance}.png", picture.light)
    write_text(out / "index.html", page(context.params.report.title, summaries, pictures, pairs, spectra))
    write_json(
        out / "results.json",
        {
            "format": 1,
            "title": context.params.report.title,
            "corpus": corpus,
            "systems": summaries,
        },
    )
    write_json(out / "params.json", _shown_params(context.params, public=corpus["public"]))
    if tracking_enabled():
        _publish(context, metrics, out)


def _shown_params(params: Params, *, public: bool) -> dict[str, Any]:
    """Return every parameter as it was when the report was written: MLflow's own must be short.

    The section ``prepare`` of a private corpus names it, so it stays out.
    """
    content = to_mapping(params)
    return content if public else {name: section for name, section in content.items() if name != "prepare"}


def _spectra(pairs: Sequence[Pair]) -> dict[str, Picture]:
    """Draw every public utterance that can be listened to."""
    from voxveil.results.report.figures import DARK, LIGHT, figure_png, spectrogram_figure, spectrograms

    pictures = {}
    for utterance, group in by_utterance(pairs).items():
        panels = spectrograms(group)
        light, dark = (figure_png(spectrogram_figure(panels, theme)) for theme in (LIGHT, DARK))
        pictures[utterance] = Picture(light, dark)
    return pictures


def _publish(context: StageContext, metrics: Path, report: Path) -> None:
    try:
        # Kubeflow says which trainings there were; under DVC their inputs lie beside the metrics.
        training = context.training or training_fingerprints(context.params, metrics.parent.parent)
        publish(metrics, report, training=training)
    except VoxveilError as error:
        warn(f"results are in the report only; 'voxveil track sync' publishes them later: {error}")


def _draw(summaries: Sequence[Summary]) -> dict[str, Picture]:
    try:
        from voxveil.results.report.figures import (
            DARK,
            LIGHT,
            figure_png,
            privacy_utility_figure,
            rank_figure,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError("matplotlib", "plots") from None
    drawn = {"privacy_utility": privacy_utility_figure, "rank_histogram": rank_figure}
    return {
        name: Picture(figure_png(draw(summaries, LIGHT)), figure_png(draw(summaries, DARK)))
        for name, draw in drawn.items()
    }
