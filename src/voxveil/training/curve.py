"""``curve.csv``: the training curve beside a model, the record behind DVC plots and MLflow curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from voxveil.storage.atomic import write_text

__all__ = ["write_curve"]


def write_curve(folder: Path, curve: Sequence[dict[str, float]]) -> None:
    """Write ``curve.csv`` into ``folder``: one row per point, ``step`` first, others in name order."""
    names = ["step", *sorted({name for point in curve for name in point} - {"step"})]
    rows = [",".join(_text(point[name]) if name in point else "" for name in names) for point in curve]
    write_text(Path(folder) / "curve.csv", "".join(f"{row}\n" for row in [",".join(names), *rows]))


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6g}"
