"""Outputs of every training stage: weights, model description, curve and metrics."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from voxveil.runtime.atomic import write_bytes, write_json, write_text
from voxveil.training.checkpoint import model_bytes

__all__ = ["curve_text", "write_curve", "write_trained"]


def write_trained(
    folder: Path,
    model: nn.Module,
    description: Mapping[str, Any],
    curve: Sequence[Mapping[str, float]],
    metrics: Mapping[str, float],
) -> None:
    """Write ``model.safetensors``, ``model.json``, ``curve.csv`` and ``metrics.json``.

    Args:
        folder: Output of a training stage.
        model: Its parameters and buffers are stored; one without any gives a valid empty file.
        description: Everything needed to rebuild the model; ``format`` 1 is added.
        curve: Points with ``step`` and values.
        metrics: Flat numbers by name, e.g. ``train_pitch/correlation``, for ``dvc metrics show``.
    """
    write_bytes(folder / "model.safetensors", model_bytes(model))
    write_json(folder / "model.json", {"format": 1, **description})
    write_curve(folder, curve)
    write_json(folder / "metrics.json", dict(metrics))


def write_curve(folder: Path, curve: Sequence[Mapping[str, float]]) -> None:
    """Write ``curve.csv``, the record behind DVC plots and MLflow curves, into ``folder``."""
    write_text(folder / "curve.csv", curve_text(curve))


def curve_text(curve: Sequence[Mapping[str, float]]) -> str:
    """Return a curve as CSV: ``step`` first, then the other columns by name."""
    names = ["step", *sorted({name for point in curve for name in point} - {"step"})]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for point in curve:
        writer.writerow({name: f"{value:.9g}" for name, value in point.items()})
    return text.getvalue()
